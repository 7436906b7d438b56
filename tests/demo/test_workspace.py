"""The workspace of the demo: what is made, what runs in it, what is left of it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from deployctl import inventory
from deployctl.demo import workspace as demo
from deployctl.errors import DeployError


@pytest.fixture(params=["plain", "with 'blanks: #1"])
def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[demo.Workspace]:
    made = demo.make(tmp_path / request.param)
    yield made
    if made.directory.exists():
        demo.stop(made, grace=0)


def playbook(workspace: demo.Workspace) -> dict[str, object]:
    loaded = yaml.safe_load((workspace.playbooks / "restart.yaml").read_text())
    assert isinstance(loaded, dict)
    return loaded


def test_ct200_is_this_machine(workspace: demo.Workspace) -> None:
    assert inventory.load(workspace.hosts).targets["ct200"].kind == "local"


def test_the_playbook_names_the_directory_and_the_command_of_the_run(workspace: demo.Workspace) -> None:
    workload = playbook(workspace)["workload"]
    assert isinstance(workload, dict)
    assert workload["directory"] == str(workspace.target)
    assert [str(word) for word in workload["command"]] == list(workspace.command)
    assert workload["name"] == "train"


def test_two_workspaces_keep_their_records_apart(tmp_path: Path) -> None:
    for name in ("one", "two"):
        workspace = demo.make(tmp_path / name)
        assert f"state: {workspace.directory}/state" in workspace.hosts.read_text()


def test_the_push_has_something_to_change(workspace: demo.Workspace) -> None:
    names = sorted(file.name for file in workspace.source.glob("*.py"))
    assert names == ["throughput.py", "train_dflash_pipeline.py"]
    assert all((workspace.source / name).read_bytes() != (workspace.target / name).read_bytes() for name in names)


def test_a_directory_with_files_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(DeployError, match="not empty"):
        demo.make(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["mine"]


def test_a_path_that_no_playbook_can_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DeployError, match="cannot hold this path"):
        demo.make(tmp_path / "a\nb")
    assert not list(tmp_path.iterdir())


def test_a_directory_that_cannot_be_made_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DeployError, match="cannot make the workspace"):
        demo.make(tmp_path / "file" / "below")


def test_the_old_trainer_runs_in_a_session_of_its_own(workspace: demo.Workspace) -> None:
    pid = demo.start_old(workspace)
    assert demo.running(workspace) == pid
    assert os.getsid(pid) == pid
    assert f"version 1 pid {pid} " in workspace.log.read_text()


def test_the_old_trainer_takes_an_interrupt_even_when_its_starter_ignored_it(tmp_path: Path) -> None:
    workspace = demo.make(tmp_path / "work")
    start = "import sys, pathlib; from deployctl.demo import workspace as w; print(w.start_old(w.Workspace(pathlib.Path(sys.argv[1]))))"
    argv = ["env", "--ignore-signal=INT", sys.executable, "-c", start, str(workspace.directory)]
    pid = int(subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60).stdout)
    os.kill(pid, signal.SIGINT)
    deadline = time.monotonic() + 20
    while demo.running(workspace) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert workspace.log.read_text().endswith(".pt, leaving\n")


def test_a_trainer_that_does_not_start_is_an_error_with_its_last_words(workspace: demo.Workspace) -> None:
    (workspace.target / "throughput.py").write_text("Meter = 1 / 0\n")
    with pytest.raises(DeployError, match="ZeroDivisionError"):
        demo.start_old(workspace)


def test_stop_ends_the_trainer_and_leaves_nothing(workspace: demo.Workspace) -> None:
    process = os.pidfd_open(demo.start_old(workspace))
    demo.stop(workspace)
    assert not workspace.directory.exists()
    assert select.select([process], [], [], 0)[0] == [process]
    os.close(process)


def test_stop_ends_a_trainer_that_is_deaf_to_interrupts(workspace: demo.Workspace) -> None:
    for file in workspace.source.glob("*.py"):
        (workspace.target / file.name).write_bytes(file.read_bytes())
    argv = [sys.executable, "-u", str(workspace.target / demo.SCRIPT), "--ignore-int"]
    with workspace.log.open("ab") as log, subprocess.Popen(argv, cwd=workspace.target, stdout=log) as process:
        deadline = time.monotonic() + 20
        while demo.running(workspace) != process.pid and time.monotonic() < deadline:
            time.sleep(0.02)
        demo.stop(workspace, grace=0.2)
        assert process.wait(timeout=5) == -signal.SIGKILL


def test_stop_without_a_trainer_removes_the_workspace(workspace: demo.Workspace) -> None:
    demo.stop(workspace)
    assert not workspace.directory.exists()
