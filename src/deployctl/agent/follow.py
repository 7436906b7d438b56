"""job, resume and attach: the cut-over is handed to a process of its own, and its events are sent for as long as somebody listens."""

from __future__ import annotations

import os
import time
from typing import Any, Callable, Dict, Optional

from . import cutover, lock, metric, opening, procfs, runs, state, tree
from .faults import Fault, Refused
from .wire import HungUp

BEAT = 5.0  # seconds between signs of life while nothing happens
GLANCE = 0.2  # seconds between looks at a job that is not our child
LAUNCHES = 1.0  # seconds in which a launch that its job has left may yet come to its end
LIVES = 3  # a job that dies more often than that is left to a person


def job(session: Any, request: Dict[str, Any]) -> Dict[str, Any]:
    """The answer of `led`; the job's events are sent as they come. The lock is the job's from the fork on.

    request: job (docs/architecture.md section 4). What the session saw of the running process goes into the job's own file.
    """
    assert session.events is not None
    kept = ("before", "capture", "record", "samples")
    workload = dict(request["job"]["workload"], match=session.workload["match"])
    seen = dict({name: getattr(session, name) for name in kept}, workload=workload)
    spec = dict(request["job"], target=session.target, **seen)
    metric.note_before(spec)
    try:
        state.write_json(session.home.job(session.run), spec, private=True)
        cutover.make_room(session, spec)
    except OSError:
        runs.close(session.home, session.run)  # it has not begun
        raise
    return led(session, lead(session, spec))


def resume(session: Any, request: Dict[str, Any]) -> Dict[str, Any]:
    """The answer of `led` about a run whose job was killed: it is begun anew from its file. request: run, who. Raises Busy, Refused."""
    home = session.home = runs.holding(session, request)
    session.lock = lock.take(home.lock, dict(request["who"], run=request["run"]))
    home.sweep()
    runs.unfinished(home)  # one that has an end is closed
    spec = state.read_json(home.job(request["run"]))
    if spec is None:
        raise Refused("run %s has nothing left to do" % request["run"], where=home.name, todo="`deployctl status` says what runs")
    return led(session, again(session, spec))


def led(session: Any, status: Optional[int]) -> Dict[str, Any]:
    """{"status"} of the run's end; null for a run whose job died before it: then `unfinished` says at which operation, and `running`
    whether something of the workload runs.
    """
    if status is not None:
        return {"status": status}
    left = next((one for one in runs.with_job(session.home) if one["run"] == session.run), None)
    until = time.monotonic() + (LAUNCHES if left and left["op"] == "launch" else 0.0)
    while not (running := _running(session.home, session.run)) and time.monotonic() < until:
        time.sleep(GLANCE)
    return {"status": None, "unfinished": left, "running": running}


def finish(session: Any, request: Dict[str, Any]) -> Dict[str, Any]:
    """The facts of `open`, and `finished` (a status): first leads the run that `open` found without an end. request: run."""
    own = session.run, session.workload, session.events
    spec = state.read_json(session.home.job(request["run"]))
    if spec is None:
        raise Refused("the job file of run %s is damaged" % request["run"], where=session.home.name, todo="remove it by hand")
    try:
        status = again(session, spec, keep=True)
    finally:
        session.run, session.workload, session.events = own
    if status is None:
        raise Fault("the job of run %s died %d times" % (request["run"], LIVES), where="job", todo="`deployctl status` says what runs")
    session.handed_over = False
    return dict(opening.facts(session), finished=status)


def again(session: Any, spec: Dict[str, Any], keep: bool = False) -> Optional[int]:
    """Leads a run that has no end to it; the session must hold the lock. The answer of `lead`."""
    session.run, session.workload = spec["run"], spec["workload"]
    session.events = state.EventFile(session.home.events(spec["run"]), spec["run"], spec["target"])
    try:
        cutover.make_room(session, spec)
    except OSError:
        pass  # a disk that is full keeps no run from its end
    return lead(session, spec, keep)


def lead(session: Any, spec: Dict[str, Any], keep: bool = False) -> Optional[int]:
    """Forks the job and follows it; one that dies is begun anew. The lock is held all the time; after the end only with `keep`.

    The exit status; None for a run that is left without an end, since its job died too often.
    """
    session.handed_over = True
    begin = session.events.size()
    for life in range(1, LIVES + 1):
        seen, bell = cutover.fork(session, spec)
        try:
            tail = Tail(session.wire.send, session.home.events(spec["run"]), begin)
            ended = tail.follow(lambda: _wait(session, bell))  # noqa: B023 - used within this turn of the loop
        finally:
            os.close(bell)
        os.waitpid(seen["pid"], 0)
        begin = tail.offset
        if ended is not None:
            if not keep:
                os.close(session.lock)
                session.lock = None
            return int(ended["status"])
        if life < LIVES:
            _tell_of_death(session, seen["pid"], life)
    return None


def _tell_of_death(session: Any, pid: int, life: int) -> None:
    try:
        session.events.say("cutover", "job-died", sync=True, last=True, job_pid=pid, life=life)
    except OSError:
        pass  # a full disk


def attach(session: Any, request: Dict[str, Any]) -> Dict[str, Any]:
    """The answer of `led`; sends the events of a run until its end, or until its job is gone. request: run."""
    home = session.home = runs.holding(session, request)
    run = session.run = request["run"]
    ended = Tail(session.wire.send, home.events(run), 0).follow(lambda: _glance(session, home, run))
    return led(session, ended["status"] if ended else None)


def _running(home: state.Home, run: str) -> bool:
    """Whether something of the workload of a run without an end runs."""
    spec = state.read_json(home.job(run))
    try:
        return spec is not None and tree.find(spec["workload"], state.read_json(home.record), os.fsencode(home.mark)).top is not None
    except Fault:
        return True  # more than one line of them


class Tail:
    """Sends the lines of an event file as they are written."""

    def __init__(self, send: Callable[[Dict[str, Any]], None], path: str, offset: int) -> None:
        self._send, self._path, self.offset = send, path, offset

    def follow(self, over: Callable[[], bool]) -> Optional[Dict[str, Any]]:
        """The `end` event, or None: follows until that or until `over` says (after a wait) that nothing more will come."""
        ended = None
        last = False
        with open(self._path, "rb") as events:
            while True:
                events.seek(self.offset)
                whole, newline, _ = events.read().rpartition(b"\n")
                self.offset += len(whole) + len(newline)
                for line in whole.split(b"\n") if newline else ():
                    event = state.event_of(line)
                    if event is None:
                        continue
                    ended = event if event["what"] == "end" else ended
                    self._send({"event": event})
                if ended is not None or last:
                    return ended
                last = over()


def _wait(session: Any, bell: int) -> bool:
    """Waits for the job's next event; True when the job is gone. Raises HungUp when the controller is."""
    _heed(session.wire.next(timeout=BEAT, also=bell))
    try:
        rung = os.read(bell, 4096)
    except BlockingIOError:
        session.wire.send({"alive": True})
        return False
    return not rung


def _glance(session: Any, home: state.Home, run: str) -> bool:
    """The same for the run of another session, in prepare too."""
    until = time.monotonic() + BEAT
    size = os.stat(home.events(run)).st_size
    worker = runs.job_of(home, run)
    while time.monotonic() < until:
        if not (procfs.same(worker) if worker else runs.holds(home, run)):
            return True
        _heed(session.wire.next(timeout=GLANCE))
        if os.stat(home.events(run)).st_size != size:
            return False
    session.wire.send({"alive": True})
    return False


def _heed(request: Optional[Dict[str, Any]]) -> None:
    if request is not None and request["op"] == "close":
        raise HungUp("the controller let go")
