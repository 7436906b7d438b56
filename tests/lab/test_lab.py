"""The lab itself: what `up` makes, what `status` says, what `down` leaves (nothing), how real ssh fares with its keys."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab import cgroups, processes
from tests.lab.conftest import COMMAND
from tests.lab.errors import LabError
from tests.lab.lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.serial]


def run(lab: Lab, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """`lab WORDS` for this lab."""
    environment = {**os.environ, "DEPLOYCTL_LAB": str(lab.directory)}
    return subprocess.run([COMMAND, *words], env=environment, check=check, capture_output=True, text=True, timeout=120)


def ssh(lab: Lab, name: str, line: str) -> subprocess.CompletedProcess[bytes]:
    """The real ssh client."""
    return subprocess.run(["ssh", "-F", lab.ssh_config, name, line], stdin=subprocess.DEVNULL, capture_output=True, timeout=30)


def traces(lab: Lab) -> list[str]:
    """Everything of the lab that is on this machine: files, cgroups, and each process that names it or stands in its mounts."""
    names = (str(lab.directory), lab.host.unique)
    found = [str(path) for path in [*cgroups.directories(lab.host.unique), lab.directory] if path.exists()]
    for pid in processes.pids():
        if processes.look(pid) is None or pid == os.getpid():
            continue
        try:
            mounts = Path(f"/proc/{pid}/mountinfo").read_text()
        except OSError:
            continue
        if any(name in mounts + " ".join(processes.command_line(pid)) for name in names):
            found.append(f"process {pid}")
    return found


@pytest.fixture
def other(lab: Lab, tmp_path: Path) -> Iterator[Lab]:
    """A second lab, beside the one that is up."""
    other = Lab(tmp_path / "lab")
    run(other, "up", "--no-systemd")
    yield other
    run(other, "down")


def test_a_second_up_changes_nothing(lab: Lab) -> None:
    before = lab.parts()
    systemd = [] if lab.made["systemd"] else ["--no-systemd"]
    assert "is up" in run(lab, "up", *systemd).stdout
    assert lab.parts() == before


def test_up_repairs_what_is_missing(other: Lab) -> None:
    before = {part["name"]: part["pid"] for part in other.parts()}
    process = processes.look(before["sshd"])
    assert process
    process.kill()
    processes.wait_for("sshd: end", lambda: not process.alive, 10, "")
    other.stop(200)
    other.freeze(201)
    assert "ct200  STOPPED" in run(other, "status", check=False).stdout
    run(other, "up", "--no-systemd")
    after = {part["name"]: part["pid"] for part in other.parts()}
    assert all(part["ok"] for part in other.parts())
    assert {name for name in before if before[name] != after[name]} == {"sshd", "ct200"}
    assert ssh(other, "pve1", "pct exec 200 -- hostname").stdout == b"ct200\n"


def test_up_makes_a_lab_whole_whose_processes_were_killed(other: Lab) -> None:
    other.exec(200, "touch", "/root/kept")
    keeper = other.host.keeper()
    assert keeper
    keeper.kill()
    run(other, "up", "--no-systemd")
    assert ssh(other, "pve1", "pct exec 200 -- ls /root").stdout == b"kept\n"


def test_status_says_by_its_exit_status_whether_all_is_up(other: Lab) -> None:
    assert run(other, "status").returncode == 0
    other.stop(203)
    done = run(other, "status", "--json", check=False)
    assert done.returncode == 1 and json.loads(done.stdout)["up"] is False


def test_two_labs_do_not_meet(lab: Lab, other: Lab) -> None:
    other.exec(200, "touch", "/root/of-the-other")
    assert lab.exec(200, "test", "-e", "/root/of-the-other", check=False).returncode == 1
    assert lab.port != other.port and lab.init_pid(200) != other.init_pid(200)
    calls = len(lab.calls())
    assert ssh(other, "pve1", "pct exec 200 -- ls /root").stdout == b"of-the-other\n"
    assert len(lab.calls()) == calls and other.calls()[-1]["argv"] == ["exec", "200", "--", "ls", "/root"]


def test_down_leaves_nothing_behind(lab: Lab, tmp_path: Path) -> None:
    """Not even of a container that is frozen, an exec that lost its ssh, a process that left its session."""
    other = Lab(tmp_path / "lab")
    mounts = Path("/proc/self/mountinfo").read_text()
    run(other, "up", "--no-systemd")
    other.exec(200, "sh", "-c", "setsid -f sleep 1000 >/dev/null 2>&1")
    cut = subprocess.Popen(["ssh", "-F", other.ssh_config, "pve1", "pct exec 201 -- sleep 1001"], stdin=subprocess.DEVNULL)
    processes.wait_for("exec", lambda: other.exec(201, "pgrep", "-f", "sleep 1001", check=False).stdout, 10, "")
    cut.kill()
    cut.wait()
    other.freeze(203)
    assert len(traces(other)) > 10
    run(other, "down")
    assert traces(other) == []
    assert Path("/proc/self/mountinfo").read_text() == mounts
    assert not Path("/etc/pve").exists() and not Path("/usr/sbin/pct").exists()


def test_down_works_when_half_of_it_is_up_and_when_nothing_is(lab: Lab, tmp_path: Path) -> None:
    other = Lab(tmp_path / "lab")
    run(other, "up", "--no-systemd")
    (other.directory / "keeper").unlink()
    (other.directory / "lxc/200/config").unlink()
    run(other, "down")
    assert traces(other) == []
    assert "was not up" in run(other, "down").stdout


def test_up_refuses_a_directory_with_other_files(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    done = run(Lab(tmp_path), "up", check=False)
    assert done.returncode == 1 and "holds other files; do: " in done.stderr
    run(Lab(tmp_path), "down")
    assert (tmp_path / "mine").exists()


def test_up_refuses_a_proxmox_node(lab: Lab, tmp_path: Path) -> None:
    """The lab's own host looks like one."""
    done = lab.host.call("/usr/bin/python3", "-B", str(COMMAND), "up", check=False)
    assert done.returncode == 1 and b"this is a Proxmox node" in done.stderr


def test_current_says_what_to_do_when_no_lab_is_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPLOYCTL_LAB", str(tmp_path / "none"))
    with pytest.raises(LabError, match=r"is not up .*; do: run"):
        Lab.current()


def test_ssh_reaches_the_host_and_each_connection_is_counted(lab: Lab) -> None:
    before = lab.connections()
    assert ssh(lab, "pve1", "hostname; ls -A /root; id -u").stdout == b"pve1\n0\n"
    assert lab.connections() == before + 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("unknown-key", b"No ED25519 host key is known"),
        ("wrong-key", b"REMOTE HOST IDENTIFICATION HAS CHANGED"),
        ("unreachable", b"Connection refused"),
    ],
)
def test_ssh_does_not_get_in(lab: Lab, name: str, text: bytes) -> None:
    done = ssh(lab, name, "true")
    assert done.returncode == 255 and text in done.stderr


def test_sftp_writes_a_file_on_the_host(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "batch").write_text(f"put {tmp_path}/batch /root/by-sftp\n")
    subprocess.run(["sftp", "-q", "-F", lab.ssh_config, "-b", tmp_path / "batch", "pve1"], check=True, capture_output=True, timeout=30)
    assert lab.host.call("cat", "/root/by-sftp").stdout.startswith(b"put ")
    lab.host.call("rm", "/root/by-sftp")
    assert not Path("/root/by-sftp").exists()


def test_a_container_sees_nothing_of_this_machines_files(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "secret").touch()
    for ct in (200, 201, 203):
        assert lab.exec(ct, "test", "-e", str(tmp_path), check=False).returncode == 1
        assert lab.exec(ct, "ls", "/home").stdout == b"trainer\n"


def test_an_orphan_in_a_container_is_reaped(lab: Lab) -> None:
    lab.exec(200, "sh", "-c", "(sh -c 'exec true' &) ; exec true")
    processes.wait_for("reaping", lambda: b"defunct" not in lab.exec(200, "ps", "-e").stdout, 3, "")


def test_init_pid_is_the_containers_pid_1_on_this_machine(lab: Lab) -> None:
    assert processes.namespace_pids(lab.init_pid(201))[-1] == 1
    assert os.readlink(f"/proc/{lab.init_pid(201)}/root") == "/"
    assert "100000" in Path(f"/proc/{lab.init_pid(201)}/uid_map").read_text()


def test_a_frozen_container_stands_still_until_it_is_thawed(lab: Lab) -> None:
    lab.freeze(200)
    try:
        assert lab.state(200) == "FROZEN" and lab.host.call("pct", "status", "200").stdout == b"status: running\n"
    finally:
        lab.thaw(200)
    assert lab.state(200) == "RUNNING"


def test_settings_are_put_back(lab: Lab) -> None:
    before = (lab.directory / "settings.json").read_text()
    with pytest.raises(ZeroDivisionError), lab.settings(delay=3.0):
        assert json.loads((lab.directory / "settings.json").read_text())["delay"] == 3.0
        raise ZeroDivisionError
    assert (lab.directory / "settings.json").read_text() == before


def test_container_210_runs_systemd(lab: Lab) -> None:
    if not lab.made["systemd"]:
        pytest.skip("the lab was made with --no-systemd")
    assert lab.exec(210, "cat", "/proc/1/comm").stdout == b"systemd\n"
    lab.exec(210, "systemd-run", "--wait", "--quiet", "true")
    assert lab.exec(210, "python3", "-c", "print(1)").stdout == b"1\n"
