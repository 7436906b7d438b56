"""The runs that a target knows."""

from __future__ import annotations

import os
from typing import Any

import pytest

from deployctl.agent import lock, procfs, runs, state
from deployctl.agent.faults import Refused

WHO = {"user": "anna", "host": "lab", "pid": 7}
RUN = "20260101-000000-aaaa"


@pytest.fixture
def home(tmp_path: Any) -> Any:
    """A run whose job, this process, is at work and holds the lock."""
    made = state.Home(str(tmp_path), "train")
    made.make()
    handle = lock.take(made.lock, dict(WHO, run=RUN))
    own: Any = procfs.look(os.getpid())
    state.EventFile(made.events(RUN), RUN, "here").say("cutover", "cutover", job_pid=own["pid"], started=own["started"], boot=own["boot"])
    state.write_json(made.job(RUN), {})
    yield made
    os.close(handle)


def cancel(home: Any) -> Any:
    return runs.cancel(None, {"run": RUN, "who": WHO, "state": home.base})


def test_a_job_that_is_at_work_is_asked(home: Any) -> None:
    assert cancel(home) == {"alive": True}
    assert state.read_json(home.cancel(RUN)) == WHO


def test_a_run_that_is_closed_in_that_moment_is_over_and_keeps_nothing(home: Any) -> None:
    os.unlink(home.job(RUN))
    with pytest.raises(Refused):
        cancel(home)
    assert not os.path.lexists(home.cancel(RUN))
