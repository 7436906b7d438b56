"""check: proves that what was launched works: the same process is alive for a while, and a line that matches came into its log."""

from __future__ import annotations

import os
import re
import time
from typing import Any, Dict, List, Optional

from . import procfs
from .faults import Fault

LOOK = 0.1  # seconds between two looks
TELL = 5.0  # seconds between two events
LINE = 4096  # bytes of a line that are looked at
TAIL = 20  # last lines of the log that are shown after a failure


class LogReader:
    """The lines of a log since an offset; a line is taken when it is whole."""

    def __init__(self, path: str, offset: int) -> None:
        self.path, self.offset = path, offset
        self._partial = b""

    def lines(self) -> List[str]:
        """The whole lines that came since the last call; a log that was truncated is read from its start."""
        try:
            with open(self.path, "rb") as log:
                size = os.fstat(log.fileno()).st_size
                self.offset = min(self.offset, size)
                log.seek(self.offset)
                data = log.read(1 << 20)
        except OSError:
            return []
        self.offset += len(data)
        lines = (self._partial + data).split(b"\n")
        self._partial = lines.pop()[:LINE]
        return [line[:LINE].decode("utf-8", "replace") for line in lines]


def check(job: Any, operation: Dict[str, Any]) -> None:
    """Emits `checking` now and then, and `checked`. Raises Fault with the last lines of the log, and how the process ended.

    operation: alive (seconds), log (regular expression or null), within (seconds).
    """
    launched, record = job.launched, job.record
    if launched is None:
        raise Fault("nothing was launched", where="check", todo="put `launch` before `check`")
    reader = LogReader(record["log"], record["log_offset"])
    pattern = re.compile(operation["log"]) if operation["log"] else None
    began = told = time.monotonic()
    line: Optional[str] = None
    while True:
        elapsed = time.monotonic() - began
        if not procfs.same(launched):
            raise _fault(job, operation, elapsed, alive=False)
        if pattern and line is None:
            line = next((text for text in reader.lines() if pattern.search(text)), None)
        if elapsed >= operation["alive"] and (line is not None or pattern is None):
            job.emit("checked", sync=True, alive=round(elapsed, 3), line=line, seconds=round(elapsed, 3))
            return
        if elapsed > operation["within"]:
            raise _fault(job, operation, elapsed, alive=True)
        if time.monotonic() - told >= TELL:
            told = time.monotonic()
            job.emit("checking", elapsed=round(elapsed, 1), alive_for=operation["alive"], line=line)
        time.sleep(LOOK)


def _fault(job: Any, operation: Dict[str, Any], elapsed: float, alive: bool) -> Fault:
    facts: Dict[str, Any] = {"tail": tail(job.record["log"], job.record["log_offset"])}
    if alive:
        what = "no line of the log matches '%s' within %d s" % (operation["log"], operation["within"])
        return Fault(what, where="check: " + job.record["log"], todo="see the last lines of the log", **facts)
    ended = job.exit_of(job.launched["pid"], job.launched["started"])
    facts["exit"] = ended
    what = "pid %d ended after %.1f s" % (job.launched["pid"], elapsed)
    return Fault(what, where="check: " + job.record["log"], todo="see the last lines of the log", **facts)


def tail(path: str, offset: int) -> List[str]:
    """The last lines of the log since the offset."""
    try:
        with open(path, "rb") as log:
            size = os.fstat(log.fileno()).st_size
            log.seek(max(min(offset, size), size - (1 << 16)))
            lines = log.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    return [line[:LINE] for line in lines[-TAIL:]]
