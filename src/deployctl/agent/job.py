"""The job: the cut-over as a process of its own, which no hang-up reaches. It holds the lock, does its operations to their end,
undoes them when one fails, and tells what it does in the run's event file.
"""

from __future__ import annotations

import os
import signal
import time
import traceback
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import check, golive, ladder, launch, state, tree
from .faults import Fault, NotStopped
from .place import Place
from .title import show_as

Operation = Dict[str, Any]
OPERATIONS: Dict[str, Callable[[Any, Operation], None]] = {
    "stop": ladder.stop,
    "golive": golive.golive,
    "goback": golive.goback,
    "launch": launch.launch,
    "check": check.check,
}


class Job:
    """What the operations share: the workload, what ran before, what was launched, and where to tell it."""

    def __init__(self, spec: Dict[str, Any], home: state.Home, events: state.EventFile, bell: int) -> None:
        self.spec, self.home, self.events, self.bell = spec, home, events, bell
        self.run: str = spec["run"]
        self.workload: Dict[str, Any] = spec["workload"]
        self.mark: bytes = os.fsencode(home.mark)
        self.before: Optional[Dict[str, Any]] = spec["before"]
        self.capture: Optional[Dict[str, Any]] = spec["capture"]
        self.record: Optional[Dict[str, Any]] = spec["record"]
        self.launched: Optional[Dict[str, Any]] = None
        self.launched_argv: Optional[List[str]] = None
        self.stopped_at: Optional[float] = None
        self.started_at: Optional[float] = None
        self.private: List[int] = []  # descriptors that no program of ours may inherit

    def emit(self, what: str, sync: bool = False, **fields: Any) -> None:
        """One event into the run's file; whoever follows is woken."""
        try:
            self.events.say("cutover", what, sync, **fields)
        except OSError:
            pass  # a full disk must not end the job between the stop and the launch
        try:
            os.write(self.bell, b".")
        except OSError:
            pass  # nobody follows, or the pipe is full of earlier bells

    def exit_of(self, pid: int, started: int) -> Optional[Dict[str, Any]]:
        """How the process ended, as its minder wrote it: {"status" or "signal", "ended"}; None when there is no minder or it is late."""
        until = time.monotonic() + 0.3
        while True:
            written = state.read_json(self.home.exit)
            if written and (written.get("pid"), written.get("started")) == (pid, started):
                return written
            if (self.record is None and self.launched is None) or time.monotonic() > until:
                return None
            time.sleep(0.01)


def perform(job: Job) -> int:
    """Does the operations, undoes them when one fails; returns the exit status, which the `end` event carries too."""
    at, fault = _all(job, job.spec["do"], "do")
    if fault is None:
        return _end(job, 0, "running" if job.launched else "stopped" if job.stopped_at else "done")
    if isinstance(fault, NotStopped):
        return _end(job, 4, "not-stopped", fault)
    if not _touched(job, at):
        return _end(job, fault.status, "refused", fault)
    if not job.spec["undo"]:
        return _end(job, *_state(job, "left"), fault)
    _, worse = _all(job, _reachable(job), "undo")
    if worse is None:
        return _end(job, 1, "rolled-back", fault)
    return _end(job, *_state(job, "left"), worse)


def _all(job: Job, operations: List[Operation], which: str) -> Tuple[int, Optional[Fault]]:
    """The index and fault of the operation that failed, or (count, None)."""
    for index, operation in enumerate(operations):
        job.emit("op", op=operation["op"], list=which, index=index, sync=True)
        try:
            OPERATIONS[operation["op"]](job, operation)
        except Fault as fault:
            return index, _failed(job, operation, fault)
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            bug = Fault("%s: %s" % (type(error).__name__, error), where="agent/%s:%d" % (os.path.basename(last.filename), last.lineno or 0))
            return index, _failed(job, operation, bug)
    return len(operations), None


def _failed(job: Job, operation: Operation, fault: Fault) -> Fault:
    job.emit("failed", sync=True, op=operation["op"], why=fault.what, where=fault.where, todo=fault.todo, **fault.facts)
    return fault


def _touched(job: Job, at: int) -> bool:
    """Whether anything was changed when the operation `at` failed: a stop that refused before its first signal changed nothing."""
    return at > 0 or job.spec["do"][0]["op"] != "stop" or job.stopped_at is not None


def _reachable(job: Job) -> List[Operation]:
    """The undo without what has nothing to act on: a workload that did not run before is not started by a rollback."""
    undo: List[Operation] = job.spec["undo"]
    if job.capture is None:
        undo = [operation for operation in undo if operation["op"] != "check" and operation.get("as") != "before"]
    return undo


def _state(job: Job, otherwise: str) -> Tuple[int, str]:
    """Status and outcome by what is there now: 5 and down when nothing of the workload runs."""
    try:
        running = tree.find(job.workload, job.record).top is not None
    except Fault:
        running = True  # more than one line of them
    return (1, otherwise) if running else (5, "down")


def _end(job: Job, status: int, outcome: str, fault: Optional[Fault] = None) -> int:
    _sweep(job)
    down = None
    if job.stopped_at is not None and job.started_at is not None:
        down = round(job.started_at - job.stopped_at, 3)
    process = None
    if job.launched is not None and status in (0, 1):
        process = {"pid": job.launched["pid"], "argv": job.launched_argv}
    job.emit("end", sync=True, status=status, outcome=outcome, process=process, down=down, reason=fault.what if fault else None)
    return status


def _sweep(job: Job) -> None:
    """Removes what was staged and did not go live."""
    for operation in job.spec["do"]:
        for files in operation.get("sets", []):
            place = Place(files["root"], job.run)
            if not os.path.lexists(place.intent):
                place.remove()


def fork(session: Any, spec: Dict[str, Any]) -> Tuple[int, int]:
    """(pid of the job, descriptor that rings at each of its events and ends with it)."""
    bell, ring = os.pipe()
    pid = os.fork()
    if pid:
        os.close(ring)
        os.set_blocking(bell, False)
        return pid, bell
    status = 1
    try:
        os.close(bell)
        os.set_blocking(ring, False)
        _leave_the_session(session)
        job = Job(spec, session.home, session.events, ring)
        job.private = [session.lock, ring]
        show_as("deployctl: job of %s (run %s)" % (session.workload["name"], session.run))
        job.emit("cutover", job_pid=os.getpid(), sync=True)
        status = perform(job)
        os.unlink(session.home.job(session.run))
    finally:
        os._exit(status)


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
