"""job: hands the cut-over to a process of its own, and follows that process's events for as long as somebody listens."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Optional

from . import job as jobs
from . import state
from .faults import Fault
from .wire import HungUp

BEAT = 5.0  # seconds between signs of life while nothing happens


def job(session: Any, request: Dict[str, Any]) -> Dict[str, Any]:
    """{"status": …} after the job's end; its events are sent as they come. The lock is the job's from the fork on."""
    assert session.events is not None
    spec = dict(request["job"], before=session.before, capture=session.capture, record=session.record)
    path = session.home.job(session.run)
    state.write_json(path, spec)
    begin = session.events.size()
    pid, bell = jobs.fork(session, spec)
    session.handed_over = True
    os.close(session.lock)
    session.lock = None
    try:
        return {"status": _follow(session, begin, pid, bell)}
    finally:
        os.close(bell)


def _follow(session: Any, offset: int, pid: int, bell: int) -> int:
    """Sends the run's events from the offset on until the job is gone. `bell` rings (a byte) at each event and ends with the job."""
    ended: Optional[Dict[str, Any]] = None
    gone = False
    with open(session.events.path, "rb") as events:
        events.seek(offset)
        partial = b""
        while True:
            lines = (partial + events.read()).split(b"\n")
            partial = lines.pop()
            for line in lines:
                event = json.loads(line)
                ended = event if event["what"] == "end" else ended
                session.wire.send({"event": event})
            if gone:
                break
            gone = _wait(session, bell)
    os.waitpid(pid, 0)
    if ended is None:
        raise Fault("the job died before its end", where="job %d" % pid, todo="look with `deployctl status`, then run again")
    return int(ended["status"])


def _wait(session: Any, bell: int) -> bool:
    """Waits for the next event; True when the job is gone. Raises HungUp when the controller is."""
    request = session.wire.next(timeout=BEAT, also=bell)
    if request is not None and request["op"] == "close":
        raise HungUp("the controller let go")
    try:
        rung = os.read(bell, 4096)
    except BlockingIOError:
        session.wire.send({"alive": True})
        return False
    return not rung
