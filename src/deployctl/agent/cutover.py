"""The fork from the session to the job: a process of its own session and scope, with the lock and nothing that leads to a controller."""

from __future__ import annotations

import os
import signal
import traceback
from typing import Any, Dict, Tuple

from . import job as jobs
from . import procfs, reserve, runs, scope, state
from .faults import Fault
from .title import show_as


def make_room(session: Any, spec: Dict[str, Any]) -> None:
    """Takes the disk space with which the end of a run can be written down, should the disk be full then. Raises OSError.

    A record holds no more than the job's file and what the places of the run say of their files.
    """
    session.events.make_reserve()
    said = [session.home.job(spec["run"]), *(place.said for place in jobs.places(spec))]
    size = sum(os.stat(path).st_size for path in said if os.path.lexists(path)) + state.RESERVED
    for spare in state.spares(session.home.record):
        reserve.make(spare, size)


def fork(session: Any, spec: Dict[str, Any]) -> Tuple[Dict[str, Any], int]:
    """(the job as a Seen, descriptor that rings at each of its events and ends with it).

    It begins where the run's events say that an earlier life of it ended.
    """
    past = runs.past(session.home, spec["run"])
    bell, ring = os.pipe()
    pid = os.fork()
    if pid:
        os.close(ring)
        os.set_blocking(bell, False)
        return procfs.look(pid) or {"pid": pid, "started": None, "boot": None}, bell
    status = 1
    try:
        os.close(bell)
        os.set_blocking(ring, False)
        status = _live(session, spec, past, ring)
    finally:
        os._exit(status)


def _live(session: Any, spec: Dict[str, Any], past: runs.Past, ring: int) -> int:
    _leave_the_session(session)
    show_as("deployctl: job of %s (run %s)" % (spec["workload"]["name"], spec["run"]))
    job = jobs.Job(spec, session.home, session.events, ring, [session.lock, ring])
    own = procfs.look(os.getpid()) or {}
    job.emit("cutover", sync=True, job_pid=os.getpid(), started=own.get("started"), boot=own.get("boot"), again=past != runs.Past())
    try:
        status = _begin(job, past)
    except Exception:
        job.emit("failed", sync=True, op=None, why=traceback.format_exc(), where="job", todo="report it; `deployctl resume` goes on")
        return 1
    if job.ended:  # else it is left to a later life
        runs.close(session.home, spec["run"])
    return status


def _begin(job: jobs.Job, past: runs.Past) -> int:
    """Leaves the login's cgroup, then performs. What an earlier life has begun is not ended by a place that cannot be left."""
    try:
        if scope.look() is not None:
            scope.leave("deployctl-%s-%d" % (job.run, os.getpid()))  # an earlier life's scope may still hold what it launched
    except Fault as fault:
        if past == runs.Past():
            return jobs.refuse(job, fault)
        job.emit("failed", sync=True, op=None, why=fault.what, where=fault.where, todo=fault.todo)
        return fault.status
    return jobs.perform(job, past)


def _leave_the_session(session: Any) -> None:
    """A session and group of its own, nothing open that leads to the controller, deaf to hang-ups."""
    os.setsid()
    for deaf_to in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
        signal.signal(deaf_to, signal.SIG_IGN)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    os.close(nothing)
    os.close(session.wire.source)
    os.close(session.wire.sink)
