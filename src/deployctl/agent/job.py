"""The job: the cut-over as a process of its own, which no hang-up reaches. It holds the lock, does its operations to their end,
undoes them when one fails or a person takes the run back, and tells what it does in the run's event file.

Every operation can be repeated: a job that was killed is begun anew from its file, at the operation that its last event names.
"""

from __future__ import annotations

import functools
import os
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import check, golive, ladder, launch, procfs, state, tree
from .faults import Cancelled, Fault, NotStopped, bug
from .place import Place
from .runs import Past

Operation = Dict[str, Any]
LINGER = 3600.0  # seconds for which a run that is taken back waits at least for a process that took a signal
# What a run needs to be gone on with, and to end: on a full disk these events have a reserve, without the fields that only explain.
LAST_WORDS = (
    "cutover", "op", "rung", "signalled", "stopped", "not-running", "not-stopped", "lingering", "live", "back", "launched", "checked",
    "failed", "cancelled", "end",
)  # fmt: skip
EXPLAINS = ("evidence", "tail", "waits")
MINDED, UNMINDED = 3.0, 0.3  # seconds that a minder has to write down an end; without knowing whether there is one
OPERATIONS: Dict[str, Callable[[Any, Operation], None]] = {
    "stop": ladder.stop,
    "golive": golive.golive,
    "goback": golive.goback,
    "launch": launch.launch,
    "check": check.check,
}


class Job:
    """What the operations share: the workload, what ran before, what was launched, and where to tell it."""

    def __init__(self, spec: Dict[str, Any], home: state.Home, events: state.EventFile, bell: int, private: List[int]) -> None:
        self.spec, self.home, self.events, self.bell = spec, home, events, bell
        self.private = private  # descriptors that no program of ours may inherit
        self.run: str = spec["run"]
        self.workload: Dict[str, Any] = spec["workload"]
        self.mark: bytes = os.fsencode(home.mark)
        self.before: Optional[Dict[str, Any]] = spec["before"]
        self.capture: Optional[Dict[str, Any]] = spec["capture"]
        self.record: Optional[Dict[str, Any]] = spec["record"]
        self.samples: List[Dict[str, Any]] = spec.get("samples", [])  # of the tree, as it was in prepare
        self.launched: Optional[Dict[str, Any]] = None
        self.launched_argv: Optional[List[str]] = None
        self.stopped_at: Optional[float] = None
        self.started_at: Optional[float] = None
        self.metrics: List[Dict[str, Any]] = []  # what checks have measured: {"name", "before", "after"}
        self.rung_sent, self.rung_done = -1, False  # of a stop that an earlier life left: its last rung, and whether its signal went out
        self.left: Tuple[str, int] = ("do", 0)  # the operation that it left
        self.signalled = False  # a signal of the stop has gone out
        self.ended = False  # the run's end is written down
        self.climb: Any = None  # the stop under way, kept for a linger
        self.deaf = False  # cancel was heard already: what follows is not cancelled again

    def emit(self, what: str, sync: bool = False, **fields: Any) -> bool:
        """One event into the run's file; whoever follows is woken. Whether it is there: a full disk must not end the job."""
        self.signalled = self.signalled or what == "rung"
        said = self._say(what, sync or what == "rung", fields)
        try:
            os.write(self.bell, b".")
        except OSError:
            pass  # nobody follows, or the pipe is full of earlier bells
        return said

    def _say(self, what: str, sync: bool, fields: Dict[str, Any]) -> bool:
        needed = {name: value for name, value in fields.items() if name not in EXPLAINS}
        for last, said in ((False, fields), (True, needed)):
            try:
                self.events.say("cutover", what, sync or last, last, **said)
                return True
            except OSError:
                if what not in LAST_WORDS:
                    break
        return False

    def keep(self, path: str, data: Dict[str, Any]) -> None:
        """Writes a record; on a full disk into what lies ready for it, or into the room that this leaves when it is removed.

        A record that cannot be written stops nothing.
        """
        ready: List[Optional[str]] = [spare for spare in state.spares(path) if os.path.lexists(spare)]
        for spare in [None, *ready, None]:
            try:
                return state.write_json(path, data, spare=spare)
            except OSError:
                continue
        return None

    def heed(self) -> None:
        """Raises Cancelled when a person has taken the run back. Cheap: called at every look of a wait."""
        if not self.deaf and os.path.lexists(self.home.cancel(self.run)):
            self.deaf = True
            who = state.read_json(self.home.cancel(self.run)) or {}
            raise Cancelled("cancelled by %s@%s" % (who.get("user", "somebody"), who.get("host", "an unknown host")), who=who)

    def exit_of(self, pid: int, started: int) -> Optional[Dict[str, Any]]:
        """How the process ended, as its minder wrote it: {"status" or "signal", "ended"}; None when there is no minder or it is late."""
        known = self.record if self.record is not None and self.record["pid"] == pid else {}
        minder = known.get("minder")
        until = time.monotonic() + (MINDED if minder else UNMINDED)
        while True:
            over = (
                time.monotonic() > until or (self.record is None and self.launched is None) or not (minder is None or procfs.same(minder))
            )
            written = state.read_json(self.home.exit)
            if written and (written.get("pid"), written.get("started")) == (pid, started):
                return written
            if over:
                return None
            time.sleep(0.01)


def perform(job: Job, past: Past) -> int:
    """Does the operations from where an earlier life left them, undoes them when one fails; the exit status, which `end` carries too."""
    _recall(job, past)
    if past.which == "undo":
        return _undo(job, (Cancelled if past.cancelled else Fault)(past.why), past.at)
    at, fault = _all(job, job.spec["do"], "do", past.at)
    if isinstance(fault, NotStopped) and fault.facts.get("taken") and _patience(job, at):
        at, fault = _linger(job, at, fault)
    if fault is None:
        return _end(job, 0, "running" if job.launched else "stopped" if job.stopped_at or job.signalled else "done")
    still = fault if isinstance(fault, NotStopped) else _outlasted(job, at, fault)
    if still is not None:
        return _end(job, 4, "not-stopped", still)
    if not _touched(job, at):
        return _end(job, fault.status, "cancelled" if isinstance(fault, Cancelled) else "refused", fault)
    if not job.spec["undo"]:
        return _end(job, *_state(job, "left"), fault)
    return _undo(job, fault, 0)


def refuse(job: Job, fault: Fault) -> int:
    """Ends a run that may not begin its first operation."""
    job.emit("failed", sync=True, op=None, why=fault.what, where=fault.where, todo=fault.todo)
    return _end(job, 1, "refused", fault)


def _recall(job: Job, past: Past) -> None:
    """What earlier lives of the job have done and seen: all of it is in the run's events."""
    job.stopped_at, job.rung_sent, job.rung_done, job.left = past.stopped_at, past.rung, past.signalled, (past.which, past.at)
    job.signalled = past.touched
    job.metrics = list(past.metrics)
    record, launched = state.read_json(job.home.record), past.launched
    if launched is not None and (record is None or (record["pid"] != launched["pid"] and record["at"] < launched["t"])):
        record = launch.record_of(job, launched)  # the disk had no room for it
        job.keep(job.home.record, record)
    if record is not None and record["run"] == job.run:
        dead = {name: record[name] for name in ("pid", "started", "boot")}
        job.launched = procfs.look(record["pid"]) if procfs.same(record) else None
        job.launched = job.launched or dead
        job.record, job.launched_argv, job.started_at = record, record["argv"], record["at"]


def _undo(job: Job, fault: Fault, index: int) -> int:
    job.deaf = True
    _, worse = _all(job, _reachable(job), "undo", index)
    if worse is None:
        return _end(job, 1, "cancelled" if isinstance(fault, Cancelled) else "rolled-back", fault)
    return _end(job, *_state(job, "left"), worse)


def _all(job: Job, operations: List[Operation], which: str, begin: int) -> Tuple[int, Optional[Fault]]:
    """The index and fault of the operation that failed, or (count, None)."""
    for index in range(begin, len(operations)):
        fault = _try(job, operations[index], functools.partial(_one, job, operations[index], which, index))
        if fault is not None:
            return index, fault
    late = _try(job, operations[-1], job.heed) if operations else None
    return (len(operations), None) if late is None else (len(operations) - 1, late)


def _one(job: Job, operation: Operation, which: str, index: int) -> None:
    job.heed()
    job.emit("op", op=operation["op"], list=which, index=index, sync=True)
    if (which, index) != job.left:
        job.rung_sent, job.rung_done = -1, False
    OPERATIONS[operation["op"]](job, operation)


def _try(job: Job, operation: Operation, act: Callable[[], None]) -> Optional[Fault]:
    """Does it; the fault when it said no, which the run's events have then."""
    try:
        act()
    except Fault as fault:
        return _failed(job, operation, fault)
    except Exception as error:
        return _failed(job, operation, bug(error))
    return None


def _failed(job: Job, operation: Operation, fault: Fault) -> Fault:
    what = "cancelled" if isinstance(fault, Cancelled) else "failed"
    job.emit(what, sync=True, op=operation["op"], why=fault.what, where=fault.where, todo=fault.todo, **fault.facts)
    return fault


def _patience(job: Job, at: int) -> float:
    return float(job.spec["do"][at].get("linger", 0.0))


def _linger(job: Job, at: int, fault: Fault) -> Tuple[int, Optional[Fault]]:
    """A signal that was taken cannot be taken back: when the process ends after all, the operations go on."""
    another = _wait_on(job, at, _patience(job, at), fault.facts.get("verdict"), fault.facts.get("detail"))
    return _all(job, job.spec["do"], "do", at + 1) if another is None else (at, another)


def _outlasted(job: Job, at: int, fault: Fault) -> Optional[Fault]:
    """None when all can be undone after a fault. A process that the stop has signalled may yet end: it is waited for, and if it lives on
    the answer is the fault that says so."""
    if job.spec["do"][at]["op"] != "stop" or job.stopped_at is not None or not job.signalled:
        return None
    job.deaf = True
    why = "cancelled" if isinstance(fault, Cancelled) else "failed"
    another = _wait_on(job, at, max(LINGER, _patience(job, at)), None, why)
    return another if job.stopped_at is None else None  # what it held may stay held; it has ended all the same


def _wait_on(job: Job, at: int, seconds: float, verdict: Optional[str], detail: Optional[str]) -> Optional[Fault]:
    """Lingers; None when the process has ended."""
    operation = job.spec["do"][at]
    job.emit("lingering", sync=True, seconds=seconds, verdict=verdict, detail=detail)
    return _try(job, operation, functools.partial(ladder.linger, job, operation, seconds))


def _touched(job: Job, at: int) -> bool:
    """Whether anything was changed when the operation `at` failed: a stop that refused before its first signal changed nothing."""
    return at > 0 or job.spec["do"][0]["op"] != "stop" or job.stopped_at is not None or job.signalled


def _reachable(job: Job) -> List[Operation]:
    """The undo without what has nothing to act on: a workload that did not run before is not started by a rollback."""
    undo: List[Operation] = job.spec["undo"]
    if job.capture is None:
        undo = [operation for operation in undo if operation["op"] != "check" and operation.get("as") != "before"]
    return undo


def _state(job: Job, otherwise: str) -> Tuple[int, str]:
    """Status and outcome by what is there now: 5 and down when nothing of the workload runs."""
    try:
        running = tree.find(job.workload, job.record, job.mark).top is not None
    except Fault:
        running = True  # more than one line of them
    return (1, otherwise) if running else (5, "down")


def _end(job: Job, status: int, outcome: str, fault: Optional[Fault] = None) -> int:
    _sweep(job)
    down = None
    if job.stopped_at is not None and job.started_at is not None:
        down = round(job.started_at - job.stopped_at, 3)
    process = None
    if job.launched is not None and (status == 0 or (status == 1 and procfs.same(job.launched))):
        process = {"pid": job.launched["pid"], "argv": job.launched_argv}
    job.ended = job.emit(
        "end", sync=True, status=status, outcome=outcome, process=process, down=down, reason=fault.what if fault else None,
        **({"metrics": job.metrics} if job.metrics else {}),
    )  # fmt: skip
    return status


def _sweep(job: Job) -> None:
    """Removes what was staged and did not go live."""
    for place in places(job.spec):
        if not os.path.lexists(place.intent):
            place.remove()


def places(spec: Dict[str, Any]) -> List[Place]:
    """Where the files of a job wait to go live."""
    roots = [files["root"] for operation in spec["do"] for files in operation.get("sets", [])]
    return [Place(root, spec["run"]) for root in dict.fromkeys(roots)]
