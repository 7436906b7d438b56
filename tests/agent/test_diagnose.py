from __future__ import annotations

import os
import signal
import time
from typing import Any

import pytest

from deployctl.agent import evidence, hearing, procfs

from .conftest import BLOCKS, IGNORES, SIGNALFD, SLEEP, SWALLOWS, TRACER, VFORKS, as_nobody, asleep, until
from .judged import judged


def asked(pid: int, name: str) -> Any:
    """The verdict about a process that got the signal and did not end."""
    before = evidence.sample(procfs.look(pid))
    if hearing.deaf(procfs.look(pid), name) is None:
        os.kill(pid, getattr(signal, f"SIG{name}"))
    until(lambda: time.monotonic() - before["at"] > evidence.APART)
    return judged(before, evidence.sample(before["seen"]), name)


def test_what_a_shell_leaves_behind_is_ignored_by_inheritance(start: Any) -> None:
    started = start(IGNORES.format(names="[2, 3]"))
    assert hearing.deaf(procfs.look(started.pid), "INT") == ("signal-ignored", "inherited")
    found = asked(started.pid, "INT")
    assert (found["verdict"], found["detail"]) == ("signal-ignored", "inherited")
    assert (found["confidence"], found["next"]) == ("proven", "signal:TERM")
    assert any(line.startswith("ignored: INT QUIT") for line in found["evidence"])


def test_a_program_may_ignore_a_signal_itself(start: Any) -> None:
    found = asked(start(IGNORES.format(names="[15]")).pid, "TERM")
    assert (found["verdict"], found["detail"], found["next"]) == ("signal-ignored", "own", "signal:INT")


def test_the_first_process_of_a_namespace_gets_handled_signals_only(start: Any) -> None:
    started = start(SLEEP.replace("'READY'", "'READY', 0"), before=["unshare", "--pid", "--fork", "python3"])
    child = until(lambda: [pid for pid in procfs.everyone() if (procfs.glance(pid) or (0, 0, 0, 0))[3] == started.pid])[0]
    started.pids = [child]
    seen = procfs.look(child)
    assert [hearing.deaf(seen, name) for name in ("TERM", "INT", "KILL")] == [("signal-ignored", "pid1"), None, None]
    assert hearing.deaf(dict(seen, pid=1), "KILL") == ("signal-ignored", "pid1")


def test_a_signal_that_every_thread_blocks_stays_queued(start: Any) -> None:
    started = start(BLOCKS)
    assert hearing.deaf(procfs.look(started.pid), "INT") == ("signal-blocked", "every-thread")
    os.kill(started.pid, signal.SIGINT)
    found = asked(started.pid, "INT")
    assert (found["verdict"], found["next"]) == ("signal-blocked", "signal:TERM")
    assert "pending: INT" in found["evidence"]


def test_a_blocked_signal_may_be_taken_through_a_descriptor(start: Any) -> None:
    assert hearing.deaf(procfs.look(start(SIGNALFD).pid), "INT") is None


def test_a_signal_of_another_user_is_refused(start: Any) -> None:
    pid = start(SLEEP).pid
    code = f"seen = procfs.look({pid}); print(hearing.deaf(seen, 'INT'), judged(None, evidence.sample(seen), 'INT'))"
    said = as_nobody(code)
    assert said.startswith("('no-permission', 'eperm')")
    assert repr("no-permission") in said.splitlines()[0].split("verdict", 1)[1]
    assert "unreadable: io" in said


def test_a_dead_process_that_nobody_collects_is_a_zombie(start: Any) -> None:
    started = start(SLEEP)
    seen = procfs.look(started.pid)
    started.process.send_signal(signal.SIGKILL)
    until(lambda: procfs.look(started.pid)["state"] == "Z")
    found = judged(None, evidence.sample(seen), "KILL")
    assert (found["verdict"], found["kill_useless"]) == ("zombie", True)
    assert f"parent: {os.getpid()}" in found["evidence"]


def test_a_stopped_process_is_suspended_for_all_but_kill(start: Any) -> None:
    started = start(SLEEP)
    os.kill(started.pid, signal.SIGSTOP)
    seen = until(lambda: [look for look in [procfs.look(started.pid)] if look["state"] == "T"])[0]
    assert [hearing.deaf(seen, name) for name in ("TERM", "KILL", "CONT")] == [("suspended", "stop-signal"), None, None]
    found = asked(started.pid, "INT")
    assert (found["verdict"], found["next"], found["confidence"]) == ("suspended", "cont", "proven")


def test_a_debugger_that_holds_a_process_is_named(start: Any) -> None:
    started = start(SLEEP)
    tracer = start(TRACER.format(pid=started.pid))
    until(lambda: procfs.look(started.pid)["state"] == "t")
    found = asked(started.pid, "INT")
    assert (found["verdict"], found["detail"], found["next"]) == ("traced", "tracing-stop", "end-tracer")
    assert f"tracer: pid {tracer.pid}" in found["evidence"]


def test_a_wait_in_the_kernel_that_makes_no_progress_is_uninterruptible(start: Any) -> None:
    started = start(VFORKS)
    until(lambda: procfs.look(started.pid)["state"] == "D")
    started.pids = [pid for pid in procfs.everyone() if (procfs.glance(pid) or (0, 0, 0, 0))[3] == started.pid]
    found = asked(started.pid, "INT")
    assert (found["verdict"], found["detail"], found["next"]) == ("uninterruptible", "vfork", "signal:KILL")


def test_a_handler_that_does_nothing_is_told_by_the_sleep_that_goes_on(start: Any) -> None:
    found = asked(asleep(start(SWALLOWS).pid)["pid"], "INT")
    assert (found["verdict"], found["confidence"]) == ("signal-swallowed", "hint")
    assert "state: S, before S" in found["evidence"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_what_cannot_be_read_is_named_and_leaves_the_verdict_open(start: Any) -> None:
    hides = "import ctypes, os, signal, time\nos.setgid(65534)\nos.setuid(65534)\nctypes.CDLL(None).prctl(4, 0)\n"  # PR_SET_DUMPABLE
    started = start(hides + SWALLOWS)
    asleep(started.pid)
    os.kill(started.pid, signal.SIGINT)
    said = as_nobody(f"seen = procfs.look({started.pid}); print(judged(evidence.sample(seen), evidence.sample(seen), 'INT'))")
    assert repr("unexplained") in said
    assert "unreadable: " in said


ENDS = [
    ("INT", {"status": 0}, "stopped", ""),
    ("INT", {"signal": 2}, "stopped", ""),
    ("TERM", None, "stopped", "default-action"),
    (None, None, "stopped", "by-itself"),
    ("KILL", None, "stopped-dirty", "killed"),
    ("KILL", {"status": 0}, "stopped", "default-action"),
    ("INT", {"signal": 9}, "stopped-dirty", "killed"),
    ("INT", {"signal": 6}, "stopped-dirty", "crashed"),
]


@pytest.mark.parametrize(("name", "ended", "verdict", "detail"), ENDS)
def test_how_it_went_is_told_by_the_signal_and_the_exit(start: Any, name: Any, ended: Any, verdict: str, detail: str) -> None:
    before = evidence.sample(procfs.look(start(SLEEP).pid))
    found = judged(before, evidence.gone(), name, exit=ended)
    assert (found["verdict"], found["detail"]) == (verdict, detail)
