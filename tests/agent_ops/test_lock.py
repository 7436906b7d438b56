"""The lock of a workload: one holder at a time, and none is left behind by a death."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import stat
import subprocess
from typing import Any

import pytest

from deployctl.agent import lock
from deployctl.agent.faults import Busy
from tests.agent_ops import start, until, write

WHO: dict[str, Any] = {"run": "20260101-000000-aaaa", "user": "anna", "host": "lab", "pid": 7}

HOLD = """
import sys, time
from deployctl.agent import lock
lock.take(sys.argv[1], {"user": "bob", "run": "other"})
print("held", flush=True)
time.sleep(600)
"""
HOLD_IN_A_FORK = """
import os, sys, time
from deployctl.agent import lock
handle = lock.take(sys.argv[1], {"user": "bob"})
pid = os.fork()
if pid:
    print(pid, flush=True)
    os._exit(0)
time.sleep(600)
"""
LOOK = """
import sys
from deployctl.agent import lock
print("looking", flush=True)
while True:
    lock.held(sys.argv[1])
"""


@pytest.fixture
def path(tmp_path: Any) -> str:
    return str(tmp_path / "lock")


def line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_lock_is_held_until_its_descriptor_is_closed(path: str) -> None:
    handle = lock.take(path, WHO)
    assert lock.held(path)
    os.close(handle)
    assert not lock.held(path)


def test_the_second_is_told_who_the_first_is(path: str) -> None:
    with start(HOLD, path) as holder:
        assert line(holder) == b"held"
        try:
            with pytest.raises(Busy) as caught:
                lock.take(path, WHO)
        finally:
            holder.kill()
    assert (caught.value.facts["holder"]["user"], caught.value.facts["holder"]["run"]) == ("bob", "other")
    assert caught.value.status == 6
    assert caught.value.facts["holder"]["since"] > 0


def test_the_death_of_the_holder_frees_the_lock(path: str) -> None:
    with start(HOLD, path) as holder:
        assert line(holder) == b"held"
        holder.send_signal(signal.SIGKILL)
    handle = lock.take(path, WHO)
    found = lock.holder_of(path)
    os.close(handle)
    assert found is not None
    assert (found["user"], found["pid"]) == ("anna", 7)


def test_a_forked_copy_keeps_the_lock_when_its_parent_is_gone(path: str) -> None:
    with start(HOLD_IN_A_FORK, path) as parent:
        pid = int(line(parent))
        parent.wait()
        held = lock.held(path)
        os.kill(pid, signal.SIGKILL)
        assert held
        until(lambda: not lock.held(path), "the end of the lock")


def test_a_program_that_is_started_does_not_inherit_the_lock(path: str) -> None:
    handle = lock.take(path, WHO)
    with subprocess.Popen(["/bin/sleep", "600"], close_fds=False) as sleeper:
        os.close(handle)
        try:
            until(lambda: not lock.held(path), "the end of the lock, which exec gives up a moment after it has begun")
        finally:
            sleeper.kill()


def test_a_shorter_holder_leaves_nothing_of_a_longer_one(path: str) -> None:
    os.close(lock.take(path, dict(WHO, host="a" * 5000)))
    os.close(lock.take(path, WHO))
    found = lock.holder_of(path)
    assert found is not None
    assert found["host"] == "lab"


def test_one_who_is_refused_does_not_change_what_the_holder_wrote(path: str) -> None:
    handle = lock.take(path, WHO)
    before = lock.holder_of(path)
    with pytest.raises(Busy):
        lock.take(path, dict(WHO, user="eve"))
    assert lock.holder_of(path) == before
    os.close(handle)


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xfe"])
def test_a_damaged_text_is_no_holder_and_no_obstacle(path: str, content: bytes) -> None:
    write(path, content)
    assert lock.holder_of(path) is None
    assert not lock.held(path)
    os.close(lock.take(path, WHO))


def test_no_file_is_no_lock(path: str) -> None:
    assert not lock.held(path)
    assert lock.holder_of(path) is None


def test_the_file_is_private(path: str) -> None:
    os.close(lock.take(path, WHO))
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_one_who_only_looks_makes_nobody_busy(path: str) -> None:
    os.close(lock.take(path, WHO))
    with start(LOOK, path) as looker:
        assert line(looker) == b"looking"
        try:
            for _ in range(3000):
                os.close(lock.take(path, WHO))
        finally:
            looker.kill()


def test_a_look_that_a_busy_machine_makes_long_is_waited_for(path: str) -> None:
    os.close(lock.take(path, WHO))
    looker = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    fcntl.flock(looker, fcntl.LOCK_SH)
    with start(HOLD, path) as taker:
        assert taker.stdout is not None
        try:
            assert not select.select([taker.stdout], [], [], 1.0)[0], "it took the lock, or gave up"
            os.close(looker)
            assert line(taker) == b"held"
        finally:
            taker.kill()
