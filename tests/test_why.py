"""The command `why`: words, exit status, one line of JSON, lines for a person; and containers with their host."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from deployctl.report import remedies, whys
from tests.lab.lab import Lab
from tests.site import Site, until
from tests.test_cli import GOOD

SLEEPS = "import signal, sys, time\nsignal.signal(2, int(sys.argv[1]) and signal.SIG_IGN or signal.default_int_handler)\n"
SLEEPS += "print('ready', flush=True)\ntime.sleep(600)\n"


@pytest.fixture
def why(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `deployctl why` in an empty directory."""

    def run(*words: str, status: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "deployctl", "why", *words]
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        surroundings = {**kept, "HOME": str(tmp_path), "LANG": "C.UTF-8", **environment}
        done = subprocess.run(argv, cwd=tmp_path, env=surroundings, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
        return done

    return run


@pytest.fixture
def sleeper() -> Iterator[Callable[[bool], subprocess.Popen[str]]]:
    """Starts a program that sleeps, deaf to INT or not."""
    running: list[subprocess.Popen[str]] = []

    def start(deaf: bool) -> subprocess.Popen[str]:
        argv = [sys.executable, "-c", SLEEPS, str(int(deaf))]
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True)
        running.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


def test_it_needs_no_hosts_file_on_this_machine_and_prints_one_line_of_json(why: Any, sleeper: Any, tmp_path: Path) -> None:
    process = sleeper(False)
    out = why("--local", "--pid", str(process.pid), "--json").stdout
    assert out.count("\n") == 1
    answer = json.loads(out)
    wanted = {"verdict", "detail", "confidence", "also", "pid", "evidence", "next", "kill_useless"}
    assert wanted <= set(answer)
    assert (answer["verdict"], answer["pid"]) == ("running", process.pid)
    assert not (tmp_path / ".local").exists()


def test_a_look_before_and_a_look_after_tell_how_it_ended(why: Any, sleeper: Any, tmp_path: Path) -> None:
    process = sleeper(False)
    (tmp_path / "before.json").write_text(why("--local", "--pid", str(process.pid), "--json").stdout)
    process.send_signal(signal.SIGINT)
    process.wait()
    answer = json.loads(why("--local", "--since", "before.json", "--after", "INT", "--json").stdout)
    assert (answer["verdict"], answer["pid"]) == ("stopped", process.pid)


def test_a_person_reads_what_is_going_on_what_to_do_and_what_not_to_do(why: Any, sleeper: Any) -> None:
    process = sleeper(True)
    lines = why("--local", "--pid", str(process.pid), "--after", "INT").stdout.splitlines()
    assert lines[0].startswith(f"here: pid {process.pid}: signal-ignored (own), proven")
    assert lines[2].startswith("  do: ")
    assert lines[2].endswith(f"(`kill -TERM {process.pid}`)")
    assert lines[3].startswith("  not: ")
    assert len(lines) < len(why("--local", "--pid", str(process.pid), "--after", "INT", "--verbose").stdout.splitlines())


WRONG = [
    ([], "there is no target"),
    (["--local"], "it is not clear which process is meant"),
    (["--local", "here", "--pid", "1"], "--local is this machine"),
    (["--local", "--pid", "1", "--match", "x"], "name a process each"),
    (["--local", "--pid", "1", "--after", "TREM"], "'TREM' is no signal"),
    (["--local", "--pid", "0"], "greater than or equal to 1"),
    (["--local", "--pid", "1", "--since", "missing.json"], "cannot read 'missing.json'"),
    (["nowhere"], "there is no hosts file"),
]


@pytest.mark.parametrize(("words", "said"), WRONG, ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_wrong_words_end_with_2_and_look_at_nothing(why: Any, words: list[str], said: str) -> None:
    assert said in why(*words, status=2).stderr


def test_a_file_that_is_no_look_is_refused(why: Any, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('{"verdict": "running"}\n')
    assert "holds no look" in why("--local", "--since", "other.json", status=2).stderr


def test_a_target_that_cannot_be_reached_ends_with_3(why: Any, tmp_path: Path) -> None:
    hosts = {"hosts": {"far": {"ssh": "root@127.0.0.1:1"}}, "targets": {"far": {"host": "far"}}}
    (tmp_path / "hosts.yaml").write_text(json.dumps(hosts))
    assert "far" in why("far", "--pid", "1", status=3).stderr


def test_the_workload_of_a_playbook_is_found_and_told_apart_from_none(why: Any, sleeper: Any, tmp_path: Path) -> None:
    (tmp_path / "playbooks").mkdir()
    workload = {**GOOD["workload"], "match": "no-such-program-of-this-test"}
    (tmp_path / "playbooks" / "restart.yaml").write_text(json.dumps({**GOOD, "workload": workload}))
    (tmp_path / "hosts.yaml").write_text(json.dumps({"targets": {"here": {"local": True, "state": str(tmp_path / "state")}}}))
    answer = json.loads(why(f"here:{workload['name']}", "--json").stdout)
    assert (answer["verdict"], answer["confidence"]) == ("stopped", "hint")
    assert f"'{workload['name']}' does not run" in answer["evidence"]


def test_of_several_workloads_one_must_be_named(why: Any, tmp_path: Path) -> None:
    (tmp_path / "playbooks").mkdir()
    for name in ("one", "two"):
        workload = {**GOOD["workload"], "name": name, "match": "/bin/sh", "command": ["sh"]}
        (tmp_path / "playbooks" / f"{name}.yaml").write_text(json.dumps({**GOOD, "workload": workload}))
    (tmp_path / "hosts.yaml").write_text(json.dumps({"targets": {"here": {"local": True, "state": str(tmp_path / "state")}}}))
    assert "no workload that is known there" in why("here:three", status=2).stderr
    with subprocess.Popen(["/bin/sh", "-c", "sleep 60; :"], start_new_session=True) as shell:
        try:
            assert "name one: here:one, here:two" in why("here", status=2).stderr
        finally:
            os.killpg(shell.pid, signal.SIGKILL)


def test_what_is_mended_outside_ends_with_the_command_and_what_it_takes_down() -> None:
    answer: dict[str, Any] = {
        "target": "ct200", "verdict": "uninterruptible", "detail": "io", "confidence": "proven", "also": [], "pid": 7, "unreadable": [],
        "evidence": ["mount: /data, fuse from sshfs", "fuse connection: 45"], "next": "fix-filesystem", "kill_useless": "unknown",
        "signals": {}, "tree": [], "look": {},
    }  # fmt: skip
    answer["commands"] = remedies.commands(answer, 200)
    assert [one["command"] for one in answer["commands"]] == ["echo 1 > /sys/fs/fuse/connections/45/abort"]
    assert any(line.startswith("  on the host: echo 1 >") and "ends that mount" in line for line in whys.lines(answer, False))
    reboot = remedies.commands({**answer, "verdict": "zombie", "next": "restart-container", "evidence": []}, 200)
    assert (reboot[0]["command"], reboot[0]["takes"]) == ("pct reboot 200", "ends everything in container 200")


@pytest.mark.lab
def test_in_a_container_the_host_adds_what_only_it_can_see(ct_site: Site) -> None:
    pid = ct_site.launch_old()
    answer = json.loads(ct_site.run("why", ct_site.place.name, "--json").stdout)
    assert (answer["verdict"], answer["pid"]) == ("running", pid)
    assert answer["host"]["process"]["pid"] != pid
    assert any(line.startswith("kernel stack: ") for line in answer["evidence"])


@pytest.mark.lab
@pytest.mark.serial
def test_a_frozen_container_is_told_from_its_host_without_being_entered(lab: Lab, ct_site: Site) -> None:
    pid = ct_site.launch_old()
    lab.freeze(200)
    try:
        done = ct_site.run("why", ct_site.place.name, "--pid", str(pid), "--json")
        answer = json.loads(done.stdout)
        assert (answer["verdict"], answer["next"], answer["pid"]) == ("frozen", "thaw", pid)
        assert [one["command"] for one in answer["commands"]] == ["lxc-unfreeze -n 200"]
    finally:
        lab.thaw(200)
    until("the trainer goes on", lambda: json.loads(ct_site.run("why", ct_site.place.name, "--json").stdout)["verdict"] == "running")
