"""The transport to this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deployctl.errors import TransportError
from deployctl.transports.base import exec
from deployctl.transports.local import Local
from tests.transports.contract import Contract, NewFilesOnly, imported, sh


@pytest.fixture
def transport() -> Local:
    return Local("here")


class TestContract(Contract, NewFilesOnly):
    pass


def test_a_program_that_is_missing_is_named(transport: Local) -> None:
    with pytest.raises(TransportError, match="here: cannot start '/no/such': No such file"):
        transport.open(["/no/such"])


def test_a_child_has_a_session_of_its_own(transport: Local) -> None:
    assert int(exec(transport, sh("ps -o sid= -p $$")).stdout) != os.getsid(0)


def test_a_child_does_not_ignore_broken_pipes(transport: Local) -> None:
    ignored = int(exec(transport, sh("grep SigIgn /proc/self/status")).stdout.split()[1], 16)
    assert not ignored & 1 << (signal.SIGPIPE - 1)


def test_close_ends_a_child_that_does_not_read(transport: Local, tmp_path: Path) -> None:
    channel = transport.open(sh(f"echo $$ > {tmp_path}/pid; echo; exec sleep 60"))
    channel.receive(5)
    channel.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_close_ends_a_child_that_is_deaf(transport: Local, tmp_path: Path) -> None:
    channel = transport.open(sh("trap '' TERM; echo; while :; do sleep 1; done"))
    channel.receive(5)
    channel.close()
    assert channel.status(0) == 128 + signal.SIGKILL


def test_close_spares_what_has_left_for_a_session_of_its_own(transport: Local, tmp_path: Path) -> None:
    channel = transport.open(sh(f"setsid sleep 60 <&- >&- 2>&- & echo $! > {tmp_path}/pid; echo"))
    channel.receive(5)
    channel.close()
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_a_grandchild_that_keeps_stderr_does_not_hold_up_the_status(transport: Local) -> None:
    begun = time.monotonic()
    done = exec(transport, sh("sleep 5 >&- <&- & echo said >&2; exit 4"))
    assert (done.status, done.stderr, time.monotonic() - begun < 3) == (4, "said\n", True)


def test_a_copy_that_fails_leaves_no_part(transport: Local, tmp_path: Path) -> None:
    with pytest.raises(TransportError, match="Is a directory"):
        transport.put(tmp_path, f"{tmp_path}/new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "status, stderr, what",
    [
        (127, "/usr/bin/env: 'python3': No such file or directory\n", "no python3 in this machine (looked in /sbin:"),
        (127, "/usr/bin/env: ‘/opt/py/bin/python3’: No such file or directory\n", "no /opt/py/bin/python3 in this machine"),
        (126, "/usr/bin/env: '/opt/py': Permission denied\n", "'/opt/py' may not be executed in this machine"),
        (1, "Traceback\nKeyError: 3\n", "the agent did not start in this machine: exit status 1, it said 'KeyError: 3'"),
        (0, "", "the agent did not start in this machine: exit status 0, it said nothing"),
    ],
)
def test_what_kept_the_agent_away_is_told(transport: Local, status: int, stderr: str, what: str) -> None:
    assert transport.explain(status, stderr).what.startswith(what)


def test_a_python_that_is_missing_is_explained_from_envs_own_words(transport: Local) -> None:
    done = exec(transport, ["/usr/bin/env", "PATH=/nowhere", "python3", "-c", "1"])
    error = transport.explain(done.status, done.stderr)
    assert ("no python3 in" in error.what, "`python:` key" in error.todo) == (True, True)


def test_a_local_target_needs_neither_fabric_nor_paramiko() -> None:
    use = "from deployctl.transports.connect import Connections; from deployctl.transports.local import Local"
    assert not imported("fabric paramiko invoke", use)


def test_no_child_is_left_by_a_run_of_execs(transport: Local) -> None:
    for _ in range(20):
        exec(transport, ["true"])
    children = subprocess.run(["ps", "-o", "stat=", "--ppid", str(os.getpid())], capture_output=True, text=True, check=False).stdout
    assert "Z" not in children and sys.platform
