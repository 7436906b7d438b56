"""check: proves that what was launched works: the same process is alive for a while, and everything that is asked for came about."""

from __future__ import annotations

import time
from typing import Any, Dict, List, Optional

from . import procfs
from .condition import Absent, Condition, Line
from .faults import Fault
from .holdings import Gpu, Port
from .logs import LogReader, tail
from .metric import Metric
from .probe import Command, Http

LOOK = 0.1  # seconds between two looks
LONGEST_LOOK = 6.0  # seconds; a look that took longer was a freeze of ours (a backup), which nobody is to pay for
ENDING = 0.5  # seconds that a program has to end after a line that must be absent, so that its end is told too
TELL = 5.0  # seconds between two events


class Watch:
    """One check under way."""

    def __init__(self, job: Any, operation: Dict[str, Any]) -> None:
        self.job, self.operation = job, operation
        self.reader = LogReader(job.record["log"], job.record["log_offset"])
        self.line = Line(operation["log"]) if operation["log"] else None
        self.metric = Metric(operation["metric"]) if operation.get("metric") else None
        self.conditions: List[Condition] = [item for item in (self.line, self.metric) if item]
        self.conditions += [Port(job, port) for port in operation.get("port", [])]
        self.conditions += [Absent(operation["absent"], self.reader)] if operation.get("absent") else []
        self.conditions += [Http(operation["http"])] if operation.get("http") else []
        self.conditions += [Command(job, operation["command"])] if operation.get("command") else []
        self.conditions += [Gpu(job)] if operation.get("gpu") else []
        self.elapsed = 0.0
        self._due = dict.fromkeys(map(id, self.conditions), 0.0)

    def look(self, elapsed: float) -> bool:
        """Whether all has come about. Raises Fault when the process has ended, or the log says what it must not say."""
        alive = procfs.same(self.job.launched)
        lines = self.reader.lines()
        for condition in self.conditions:
            condition.feed(lines)
        broken = next((condition.broken for condition in self.conditions if condition.broken), None)
        if not alive or broken:
            raise self._fault(elapsed, alive and not self._ends(), broken)
        for condition in self.conditions:
            if (not condition.met or condition.pace == 0.0) and elapsed >= self._due[id(condition)]:
                self._due[id(condition)] = elapsed + condition.pace
                condition.look(self.operation["within"] - elapsed)
        come = elapsed >= float(self.operation["alive"]) and all(condition.met for condition in self.conditions)
        return come and procfs.same(self.job.launched)  # the looks took their time; one that has ended is told by the next look

    def _ends(self) -> bool:
        """Whether the process is about to end: a traceback is written before its program is gone."""
        until = time.monotonic() + ENDING
        while procfs.same(self.job.launched) and time.monotonic() < until:
            time.sleep(0.01)
        return not procfs.same(self.job.launched)

    @property
    def found(self) -> Optional[str]:
        """The line of the log that was asked for, once it is there."""
        return self.line.line if self.line is not None else None

    def waits(self) -> List[Dict[str, str]]:
        """[{"check", "seen"}] of what has not come about."""
        return [{"check": condition.name, "seen": condition.seen} for condition in self.conditions if not condition.met]

    def late(self) -> Fault:
        """The deadline is over."""
        missing = "; ".join(wait["seen"] for wait in self.waits()) or "the machine was too slow for this check"
        return self._fail("%s within %g s" % (missing, self.operation["within"]), "see the last lines of the log", waits=self.waits())

    def _fault(self, elapsed: float, alive: bool, broken: Optional[str]) -> Fault:
        launched, todo = self.job.launched, "see the last lines of the log"
        if alive:
            return self._fail(str(broken), todo)
        ended = self.job.exit_of(launched["pid"], launched["started"])
        what = "pid %d ended after %.1f s%s" % (launched["pid"], elapsed, "; %s" % broken if broken else "")
        return self._fail(what, todo, exit=ended)

    def _fail(self, what: str, todo: str, **facts: Any) -> Fault:
        record = self.job.record
        lines = tail(record["log"], record["log_offset"])
        return Fault(what, where="check: " + record["log"], todo=todo, tail=lines, **facts, **self.shown())

    def shown(self) -> Dict[str, Any]:
        """{"metric"} where one was asked for."""
        return {"metric": self.metric.as_dict()} if self.metric is not None else {}

    def close(self) -> None:
        """Ends what still runs for this check; what a metric has come to is kept for the run's end."""
        for condition in self.conditions:
            condition.close()
        if self.metric is not None:
            self.job.metrics.append(self.metric.as_dict())


def check(job: Any, operation: Dict[str, Any]) -> None:
    """Emits `checking` now and then, and `checked`. Raises Fault with the last lines of the log, and how the process ended.

    operation: alive (seconds), log (regular expression or null), within (seconds); and where asked: absent (regular expressions),
    port (numbers), http, command (argv), gpu (true), metric.
    """
    if job.launched is None:
        raise Fault("nothing was launched", where="check", todo="put `launch` before `check`")
    watch = Watch(job, operation)
    try:
        _wait(job, operation, watch)
    finally:
        watch.close()
    passed = [condition.name for condition in watch.conditions]
    seconds = round(watch.elapsed, 3)
    job.emit("checked", sync=True, alive=seconds, line=watch.found, seconds=seconds, passed=passed, **watch.shown())


def _wait(job: Any, operation: Dict[str, Any], watch: Watch) -> None:
    """Until all has come about. Only time in which this process ran counts."""
    elapsed, told, looked = 0.0, 0.0, time.monotonic()
    while not watch.look(elapsed):
        if elapsed > operation["within"]:
            raise watch.late()
        job.heed()
        if elapsed - told >= TELL:
            told = elapsed
            job.emit(
                "checking", elapsed=round(elapsed, 1), alive_for=operation["alive"], within=operation["within"], line=watch.found,
                waits=watch.waits(),
            )  # fmt: skip
        time.sleep(LOOK)
        now = time.monotonic()
        elapsed, looked = elapsed + min(now - looked, LONGEST_LOOK), now
    watch.elapsed = elapsed
