"""Nights: the cron line and the systemd unit as an operator installs them, after the one edit."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.site import ROOT, Site

CRON = ROOT / "deploy" / "cron.d" / "deployctl"
UNITS = ROOT / "deploy" / "systemd"

# A machine of its own for one command: what it writes to /etc, /root and /usr/local goes to a directory of the test.
MACHINE = """
for directory in /etc /root /usr/local; do
    mkdir -p "$0$directory" "$0/work$directory"
    mount -n -t overlay overlay -o "lowerdir=$directory,upperdir=$0$directory,workdir=$0/work$directory" "$directory" || exit 99
done
exec "$@"
"""


def cron() -> tuple[dict[str, str], str, str]:
    """(environment, user, command) of the cron file, as cron reads it."""
    lines = [line.strip() for line in CRON.read_text().splitlines() if line.strip() and not line.startswith("#")]
    environment = dict(line.split("=", 1) for line in lines[:-1])
    *_, user, command = lines[-1].split(None, 6)
    return environment, user, command


@pytest.fixture
def machine(tmp_path_factory: pytest.TempPathFactory, ct_site: Site) -> Path:
    """The directory of a machine on which deployctl, its hosts file and its playbooks are installed as the cron file says."""
    machine = tmp_path_factory.mktemp("machine")
    (machine / "usr/local/bin").mkdir(parents=True)
    (machine / "usr/local/bin/deployctl").symlink_to(Path(sys.executable).parent / "deployctl")
    etc = machine / "etc" / "deployctl"
    etc.mkdir(parents=True)
    shutil.copy(ct_site.home / "hosts.yaml", etc)
    shutil.copytree(ct_site.home / "playbooks", etc / "playbooks")
    shutil.copytree(ct_site.home / "train", etc / "train")
    return machine


def at_night(machine: Path, target: str) -> subprocess.CompletedProcess[str]:
    """Runs the cron line as cron does: its few variables, no terminal, no agent."""
    environment, user, command = cron()
    assert user == "root"
    given = [f"{name}={text}" for name, text in {**environment, "LOGNAME": user}.items()]
    line = ["env", "-i", *given, environment["SHELL"], "-c", command.replace("TARGET", target)]
    words = ["unshare", "-m", "sh", "-c", MACHINE, str(machine), *line]
    return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, start_new_session=True, check=False)


@pytest.mark.lab
def test_the_cron_line_restarts_without_a_word(ct_site: Site, machine: Path) -> None:
    old = ct_site.launch_old()
    done = at_night(machine, "ct200")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    [now] = ct_site.trainers()
    assert now["pid"] != old
    assert list((machine / "root/.local/state/deployctl/runs").glob("*.jsonl"))


@pytest.mark.lab
def test_the_cron_line_says_what_went_wrong(ct_site: Site, machine: Path) -> None:
    (machine / "etc/deployctl/train/throughput.py").write_text("def broken(:\n")
    done = at_night(machine, "ct200")
    assert (done.returncode, done.stdout) == (1, "")
    assert "throughput.py:1: " in done.stderr


def test_the_cron_line_and_the_unit_run_the_same() -> None:
    _, _, command = cron()
    unit = (UNITS / "deployctl@.service").read_text()
    start = re.search(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    assert start is not None
    assert start[1] == command.replace("TARGET", "%i")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here")
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    for name in ("deployctl@.service", "deployctl@.timer"):
        text = (UNITS / name).read_text().replace("/usr/local/bin/deployctl", "/bin/true")
        (tmp_path / name.replace("@", "@ct200")).write_text(text)
    words = ["systemd-analyze", "verify", *sorted(str(path) for path in tmp_path.iterdir())]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
