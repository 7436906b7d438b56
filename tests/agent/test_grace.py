"""A stop that looks while it waits: a rung lasts longer while work is saved, and is over where the rest is in vain."""

from __future__ import annotations

import os
from typing import Any

import pytest

from deployctl.agent import ladder
from deployctl.agent.faults import NotStopped

from .conftest import Job
from .test_launchers import climb

SAVES = """import os, signal, sys, time
def save(number, frame):
    with open(sys.argv[0] + '.bin', 'wb', 0) as out:
        for _ in range(25):
            out.write(b'x' * 99999); time.sleep(0.1)
    os._exit(0)
signal.signal(2, save)
print('READY', flush=True)
while True: time.sleep(600)
"""
# Its work is done and saved; a thread that is no daemon keeps the interpreter.
KEPT_BY_A_THREAD = """import threading, time
threading.Thread(target=lambda: time.sleep(600)).start()
print('READY', flush=True)
try: time.sleep(600)
except KeyboardInterrupt: pass
"""
STOPS_ITSELF = """import os, signal, time
signal.signal(2, lambda *_: os.kill(os.getpid(), signal.SIGSTOP))
print('READY', flush=True)
while True: time.sleep(600)
"""


def test_a_rung_lasts_longer_while_the_shutdown_makes_progress(start: Any) -> None:
    started = start(SAVES)
    job = climb(Job(started), ("INT", 1.2), ("KILL", 5), protect=[])
    assert job.said("stopped")[0]["by"] == "INT"
    assert os.path.getsize(f"{started.script}.bin") == 25 * 99999


def test_extend_0_gives_no_more_than_the_rung(start: Any) -> None:
    job = climb(Job(start(SAVES)), ("INT", 1.2), ("KILL", 5), protect=[], extend=0)
    assert job.said("stopped")[0]["by"] == "KILL"


def test_a_wait_names_the_file_that_grows_and_when_the_signal_was_taken(start: Any) -> None:
    started = start(SAVES)
    told = climb(Job(started), ("INT", 20)).said("waiting")[0]
    assert told["growing"][0]["path"] == f"{started.script}.bin"
    assert told["growing"][0]["size"] > 9 * 99999 and told["growing"][0]["rate"] > 99999
    assert told["taken"] is not None and told["taken"] <= told["elapsed"] + 1


def test_one_more_interrupt_for_an_interpreter_that_waits_for_its_threads(start: Any) -> None:
    job = climb(Job(start(KEPT_BY_A_THREAD)), ("INT", 20, {"again": True}))
    assert len(job.said("again")) == 1
    assert job.said("stopped")[0]["by"] == "INT"


def test_without_again_a_second_interrupt_never_goes_out(start: Any) -> None:
    job = climb(Job(start(KEPT_BY_A_THREAD)), ("INT", 2.6), ("TERM", 10))
    assert (job.said("again"), job.said("stopped")[0]["by"]) == ([], "TERM")


@pytest.mark.parametrize("hurry", [True, False])
def test_hurry_skips_the_rest_of_a_wait_that_is_proven_to_be_in_vain(start: Any, hurry: bool) -> None:
    job = Job(start(STOPS_ITSELF))
    with pytest.raises(NotStopped):
        climb(job, ("INT", 60 if hurry else 2.6), hurry=hurry)
    assert bool(job.said("hurried")) == hurry
    assert job.said("not-stopped")[0]["verdict"] == "suspended"


def test_a_swallowed_signal_is_no_progress(start: Any) -> None:
    code = "import signal, time\nsignal.signal(2, lambda *_: None)\nprint('READY', flush=True)\nwhile True:\n  time.sleep(.01)\n"
    job = Job(start(code))
    with pytest.raises(NotStopped):
        ladder.stop(job, {"who": "before", "ladder": [{"signal": "INT", "wait": 1.0}]})
    assert job.said("not-stopped")[0]["verdict"] == "signal-swallowed"
