"""The frames of a Python process, read from its memory, of the Python that runs these tests."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from deployctl.agent import frames, procfs, pyspy, why

from .conftest import SLEEP, asleep, until

NOTHING = frames.Stack([], False, None)
NESTED = """import threading, time
def inner():
    print('READY', flush=True)
    time.sleep(600)
def outer(): inner()
threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
outer()
"""
COUNTS = "import itertools, collections\nprint('READY', flush=True)\ncollections.deque(itertools.repeat(0), 0)\n"
LOOPS = "import signal\nsignal.signal(2, lambda *_: None)\nprint('READY', flush=True)\nwhile True: sum(range(2000))\n"


def test_the_frames_are_those_of_the_main_thread_the_innermost_first(start: Any) -> None:
    started = start(NESTED)
    asleep(started.pid)
    found = frames.within(started.pid, 10)
    assert found is not None
    assert found.frames == [f"{name} ({started.name})" for name in ("inner", "outer", "<module>")]


def test_a_signal_whose_handler_cannot_run_is_known_from_the_interpreter(start: Any) -> None:
    pid = start(COUNTS).pid
    until(lambda: procfs.usage(pid)["cpu_ticks"] > 0.3 * procfs.TICKS, "the native loop")
    os.kill(pid, signal.SIGINT)
    until(lambda: (frames.within(pid, 10) or NOTHING).tripped)


def test_a_signal_whose_handler_has_run_is_not_taken_for_one_that_waits(start: Any) -> None:
    pid = start(LOOPS).pid
    os.kill(pid, signal.SIGINT)
    until(lambda: (frames.within(pid, 10) or NOTHING).frames and (frames.within(pid, 10) or NOTHING).tripped is not True)


def test_another_program_has_no_frames(start: Any) -> None:
    assert frames.within(start("printf 'READY\\n'; while :; do sleep 600; done", before=["sh"]).pid, 10) is None


def test_a_py_spy_that_hangs_and_whose_child_keeps_the_pipe_costs_no_more_than_its_deadline(
    start: Any, tmp_path: Any, monkeypatch: Any
) -> None:
    """The stand-in takes the place of a py-spy that never comes back; what the real one prints is not asserted here."""
    pid = start(SLEEP).pid
    stand_in = tmp_path / "py-spy"
    stand_in.write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/words\nsleep 30 &\nsleep 30\n')
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    took = []

    def looked() -> bool:
        began = time.monotonic()
        assert why.why(None, {"pid": pid})["verdict"] == "running"
        took.append(time.monotonic() - began)
        return bool((tmp_path / "words").exists() and (tmp_path / "words").read_text())

    until(looked, "the stand-in")  # on a machine under load it may be ended before it has begun
    assert max(took) < 20
    assert (tmp_path / "words").read_text().split() == ["dump", "--nonblocking", "--pid", str(pid)]


DUMP = """Process 4711: python3 train.py
Python v3.11.7 (/usr/bin/python3.11)

Thread 4712 (idle): "worker"
    wait (threading.py:320)
Thread 4711 (active): "MainThread"
    _shutdown (threading.py:1590)
"""


def test_of_a_dump_the_main_thread_counts_wherever_it_stands() -> None:
    assert pyspy.parse(DUMP) == ["_shutdown (threading.py:1590)"]
