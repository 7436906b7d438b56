"""stop: signals in the order of a ladder, each followed by a wait, until no process of the workload's tree is left."""

from __future__ import annotations

import time
from typing import Any, Dict, List, Optional, Sequence

from . import freed, hearing, launchers, pace, procfs, sending
from .climb import Climb
from .faults import Fault, NotStopped
from .procfs import Seen

Rung = Dict[str, Any]
PROTECT, PROTECT_FOR = ("*.tmp", "*.part"), 600.0  # half-written files, and the seconds for which they hold back a signal
EXTEND = 3.0  # how often its own length a rung may last while a shutdown makes progress
HOPELESS = ("signal-ignored", "signal-blocked", "exiting-stuck", "frozen", "suspended", "traced", "uninterruptible", "deadlocked", "zombie")


def stop(job: Any, operation: Dict[str, Any]) -> None:
    """Ends the workload's processes. Emits rung, rung-skipped, waiting, and stopped, not-running or not-stopped.

    operation: ladder [{"signal", "wait" (seconds), "to", "again", "only_if", "unless"}], who ("before": what runs of the workload;
    "launched": what this job started), to, extend, protect, protect_for, hurry, strict, cont, respawn, free (docs/steps/stop.md).
    Sets job.stopped_at (seconds since the epoch). Raises NotStopped, or Refused when it is unclear which process is meant.
    """
    climb = job.climb = Climb(job, operation["who"])
    if not climb.left():
        job.emit("not-running")
        return
    try:
        gone = any(Step(climb, operation, index, rung).take() for index, rung in enumerate(operation["ladder"]))
    except _Over:
        gone = False
    (say_stopped if gone else say_not_stopped)(climb, operation)


def linger(job: Any, operation: Dict[str, Any], seconds: float) -> None:
    """Waits, without a further signal, for what the ladder of this job left, be it in an earlier life of it.

    Emits `stopped`, or `not-running` when it ended while no job was at work. Raises NotStopped when it lives on at the bound.
    """
    climb = job.climb
    if climb is None:
        climb = job.climb = Climb(job, operation["who"])
        climb.recall(operation["ladder"][job.rung_sent]["signal"])
        if not climb.left():
            job.emit("not-running")
            return
    if climb.wait(None, seconds):
        say_stopped(climb, operation)
        return
    what = "it still runs after a linger of %g s, and the job waits no longer" % seconds
    pids = [seen["pid"] for seen in climb.members]
    raise NotStopped(what, where="stop: linger", todo="`deployctl why` says what it does", pids=pids, taken=climb.taken)


class _Over(Exception):
    """A rung that cannot work ends a strict ladder."""


class Step:
    """One rung of a ladder: whether it can work, the signal, and the wait."""

    def __init__(self, climb: Climb, operation: Dict[str, Any], index: int, rung: Rung) -> None:
        self.climb, self.operation, self.index, self.rung = climb, operation, index, rung
        self.name: str = rung["signal"]
        self.wait_for: float = rung["wait"]
        self.repeated = False

    def take(self) -> bool:
        """Sends the signal where it can work and waits for the end; whether nothing is left.

        A signal that an earlier life of the job has sent is not sent again: a second one would cut what the first one began. Where that
        life ended between saying it and having done it, the rung is waited out first and the signal sent only then.
        """
        climb, name = self.climb, self.name
        climb.scan()
        past = climb.job.rung_sent
        if self.index < past:
            return not climb.left()
        if self.index == past and name != "KILL":
            gone = climb.wait(name, self.wait_for)
            if gone or climb.job.rung_done:
                climb.recall(name)
                return gone
        climb.tried = name
        if self._unwanted():
            return not climb.left()
        targets = climb.targets(name, self.to)
        hearing = self._hearing(targets)
        if not hearing:
            return not climb.left()
        if self._outright(hearing) or climb.taken:
            if self._protect():
                return True
            hearing = [seen for seen in hearing if procfs.same(seen)]
        return self._send(hearing) if hearing else not climb.left()

    @property
    def to(self) -> str:
        """Whom the signal is for."""
        word: str = self.rung.get("to") or self.operation.get("to") or "main"
        return word

    def _unwanted(self) -> bool:
        """Whether the playbook asks for another verdict than there is."""
        only_if, unless = self.rung.get("only_if") or (), self.rung.get("unless") or ()
        if not only_if and not unless:
            return False
        found = self.climb.verdict()["verdict"]
        if (only_if and found not in only_if) or found in unless:
            self.climb.job.emit("rung-skipped", signal=self.name, index=self.index, verdict=found, detail="not wanted")
            return True
        return False

    def _hearing(self, targets: Sequence[Seen]) -> List[Seen]:
        """Those of the targets that the signal reaches and moves; none, and said so, when it cannot work."""
        line = self.climb.line()
        harm = launchers.objection(self.to, line) if line is not None and self.name != "KILL" else None
        if harm is not None:
            self._skip((None, harm))
            return []
        reasons = [self._deaf(seen) for seen in targets]
        hearing = [seen for place, seen in enumerate(targets) if reasons[place] is None]
        if targets and (not hearing or (reasons[0] and self.climb.top_now() is not None)):
            self._skip(reasons[0])
            return []
        return hearing

    def _deaf(self, seen: Seen) -> Optional[hearing.Deaf]:
        found = hearing.deaf(seen, self.name)
        return None if found is not None and found[0] == "suspended" and self.operation.get("cont") else found

    def _skip(self, why: Optional[Sequence[Optional[str]]]) -> None:
        word, detail = why or ("unexplained", "")
        self.climb.job.emit("rung-skipped", signal=self.name, index=self.index, verdict=word, detail=detail)
        if self.operation.get("strict"):
            raise _Over

    def _outright(self, hearing: Sequence[Seen]) -> bool:
        """Whether the signal ends one of them at once, without a line of its own code."""
        return self.name not in ("STOP", "CONT") and any(self.name == "KILL" or self.name not in seen["caught"] for seen in hearing)

    def _protect(self) -> bool:
        """Waits while a file is half written that the signal would cut, up to a bound; whether all have ended meanwhile."""
        patterns = self.operation.get("protect", PROTECT)
        bound: float = self.operation.get("protect_for", PROTECT_FOR)
        held = pace.half_written(self.climb.members, patterns) if bound and patterns else []
        if not held:
            return False
        emit = self.climb.job.emit
        emit("protected", signal=self.name, index=self.index, files=held, seconds=bound)

        def enough(used: float) -> Optional[float]:
            still = pace.half_written(self.climb.members, patterns)
            return min(bound, used + 1.0) if still else 0.0

        ended = self.climb.wait(None, min(1.0, bound), enough)
        if not ended and pace.half_written(self.climb.members, patterns):
            emit("unprotected", signal=self.name, index=self.index, files=held, seconds=bound)
        return ended

    def _send(self, hearing: Sequence[Seen]) -> bool:
        climb, name = self.climb, self.name
        climb.addressee = hearing[0]
        climb.looks.before_the_first([*hearing, *climb.members])
        outright = [seen["pid"] for seen in hearing if self._outright([seen])]
        pids = [seen["pid"] for seen in hearing]
        climb.job.emit("rung", signal=name, wait=self.wait_for, index=self.index, pids=pids, outright=outright)
        if self.to == "hold-agent" and name != "KILL":
            line = climb.line()
            climb.held = line.main if line is not None and sending.send(line.main, "STOP") else None
        if not climb.send(hearing, name):
            self._skip(("no-permission", "eperm"))
            return not climb.left()
        if self.operation.get("cont"):
            climb.send([seen for seen in hearing if seen["state"] == "T"], "CONT")
        climb.job.emit("signalled", signal=name, index=self.index, sync=True)
        climb.looks.again([*hearing, *climb.members])
        gone = climb.wait(name, self.wait_for, lambda used: self._enough(used, hearing))
        climb.take(name, hearing)
        return gone

    def _enough(self, used: float, hearing: Sequence[Seen]) -> Optional[float]:
        """The new bound of the wait: longer while a shutdown makes progress, over at once where it is proven to be in vain."""
        climb = self.climb
        climb.take(self.name, hearing)
        if not climb.looks.due() or self.name == "KILL":
            return None
        hurry, again = self.operation.get("hurry"), self.rung.get("again") and not self.repeated
        if used < self.wait_for and not hurry and not again:  # nothing would follow from a verdict
            climb.looks.again([climb.shown(), *climb.members])
            return None
        found = climb.verdict()
        if hurry and found["confidence"] == "proven" and found["verdict"] in HOPELESS:
            climb.job.emit("hurried", signal=self.name, index=self.index, verdict=found["verdict"], detail=found["detail"])
            return used
        if again and found["verdict"] == "exit-blocked":
            self.repeated = True
            climb.job.emit("again", signal=self.name, index=self.index, sync=True)
            climb.send(hearing, self.name)
        if used >= self.wait_for and found["verdict"] == "shutdown-progressing":
            longest: float = self.wait_for * max(1.0, self.operation.get("extend", EXTEND))
            return min(longest, max(used, self.wait_for) + 5.0)
        return None


def say_stopped(climb: Climb, operation: Dict[str, Any]) -> None:
    """The last process of the tree is gone. Raises NotStopped when something started it again, Fault when what it held stays held."""
    job = climb.job
    stopped_at, end = climb.ended if climb.ended[0] else (time.time(), time.monotonic())
    watched = climb.top is not None and climb.who == "before" and operation.get("respawn") != "expected"
    again = freed.respawned(job, climb.top) if watched and climb.top else None
    if again is not None:
        facts = dict(again, pids=[again["pid"]], taken=climb.taken)
        job.emit("not-stopped", **facts)
        raise NotStopped("respawned: pid %d" % again["pid"], **dict(facts, taken=[]))
    job.stopped_at = stopped_at
    found, ended = climb.ended_how()
    by = climb.sent[-1] if climb.sent else None
    how = {name: ended[name] for name in ("status", "signal") if name in ended} if ended else None
    job.emit("stopped", seconds=round(end - climb.began, 3), by=by, verdict=found["verdict"], detail=found["detail"], exit=how)
    held = freed.wait(operation.get("free") or {}, climb.gpu, job.heed)
    if held:
        raise Fault("resource-held: %s" % "; ".join(held), where="stop: free", todo="end what holds it, or remove what is stale")


def say_not_stopped(climb: Climb, operation: Dict[str, Any]) -> None:
    """The ladder has ended and something still lives. Raises NotStopped with the verdict."""
    climb.let_go()
    found = climb.verdict()
    if not climb.left():  # it ended while it was being looked at
        say_stopped(climb, operation)
        return
    facts = dict(found, pids=[seen["pid"] for seen in climb.members], taken=climb.taken)
    climb.job.emit("not-stopped", **facts)
    raise NotStopped(("%(verdict)s %(detail)s" % found).strip(), **facts)
