"""stop: signals in the order of a ladder, each followed by a wait, until no process of the workload's tree is left."""

from __future__ import annotations

import os
import time
from typing import Any, Dict, List, Optional, Sequence, Tuple

from . import diagnose, match, procfs, sending, tree
from .faults import NotStopped
from .procfs import Seen

LONGEST_LOOK = 0.5  # seconds of a wait that one look may use up: time in which we were frozen does not count
LOOK = 0.4  # seconds that one look waits for an end, at most
SCAN_SHARE = 0.003  # of a core: what looking for new processes of the tree may cost during a wait
FIRST_TOLD, TOLD_EVERY = 2.0, 5.0  # seconds of a wait
LINGER_TOLD = 60.0  # the same while a job lingers
SINKS = ("tee", "logger", "ts")  # what stands at the end of a pipe and ends with it


def stop(job: Any, operation: Dict[str, Any]) -> None:
    """Ends the workload's processes. Emits rung, rung-skipped, waiting, and stopped, not-running or not-stopped.

    operation: ladder [{"signal", "wait" (seconds)}], who ("before": what runs of the workload; "launched": what this job started).
    Sets job.stopped_at (seconds since the epoch). Raises NotStopped, or Refused when it is unclear which process is meant.
    """
    climb = job.climb = Climb(job, operation["who"])
    if not climb.left():
        job.emit("not-running")
        return
    if any(climb.rung(index, rung["signal"], rung["wait"]) for index, rung in enumerate(operation["ladder"])):
        climb.say_stopped()
    else:
        climb.say_not_stopped()


def linger(job: Any, seconds: float) -> bool:
    """Waits, without a further signal, for what the ladder of this job left; whether it has ended (then `stopped` was emitted)."""
    climb: Climb = job.climb
    ended = climb.wait(None, seconds)
    if ended:
        climb.say_stopped()
    return ended


def _main(job: Any, who: str) -> Optional[Seen]:
    """The top process of the workload as it is now: since prepare looked, somebody may have started or ended one."""
    if who == "launched":
        return job.launched if job.launched is not None and procfs.same(job.launched) else None
    known = job.before if job.before is not None and procfs.same(job.before) else job.record
    found = tree.find(job.workload, known, job.mark)
    return found.top if found.how != "mark" else None


def addressee(main: Seen, members: Sequence[Seen]) -> Seen:
    """Whom a signal is for that asks a program to end: the main process, or, when that is a shell with one child, its child.

    A shell keeps the signal until its child has ended, or ends and leaves the child behind.
    """
    while match.is_shell(main["argv"], main["comm"]):
        children = [seen for seen in members if seen["ppid"] == main["pid"] and seen["comm"] not in SINKS]
        if len(children) != 1:
            break
        main = children[0]
    return main


def _key(seen: Seen) -> Tuple[int, int]:
    return seen["pid"], seen["started"]


class Pace:
    """What the processes of a tree use between two looks at them."""

    def __init__(self, members: Sequence[Seen]) -> None:
        self.at, self.used = time.monotonic(), self._usage(members)

    @staticmethod
    def _usage(members: Sequence[Seen]) -> Dict[Tuple[int, int], Dict[str, Any]]:
        usages = ((_key(seen), procfs.usage(seen["pid"], threads=False)) for seen in members)
        return {key: usage for key, usage in usages if usage is not None}

    def since(self, members: Sequence[Seen]) -> Tuple[float, Optional[float]]:
        """(cpu as a share of one core, bytes written a second or None when nobody's can be read) since the look before."""
        at, used = time.monotonic(), self._usage(members)
        pairs = [(self.used[key], used[key]) for key in used if key in self.used]
        seconds = max(at - self.at, sending.POLL)
        self.at, self.used = at, used
        ticks = [new["cpu_ticks"] - old["cpu_ticks"] for old, new in pairs]
        known = [(old["written_bytes"], new["written_bytes"]) for old, new in pairs]
        written = [new - old for old, new in known if old is not None and new is not None]
        return round(sum(ticks) / procfs.TICKS / seconds, 2), round(sum(written) / seconds) if written else None


class Climb:
    """One stop under way: who is meant, what was sent, what is left."""

    def __init__(self, job: Any, who: str) -> None:
        main = _main(job, who)
        self.job, self.who, self.main = job, who, main
        self.began = time.monotonic()
        self.ended = (0.0, 0.0)  # when nothing was left: since the epoch, monotonic
        self.sent: List[str] = []
        self.taken: List[str] = []  # of those sent, what does not wait in a queue
        self.tried: Optional[str] = None
        self.before: Optional[diagnose.Sample] = None  # the addressee before the first signal
        self.members: List[Seen] = [main] if main is not None else []  # the living ones when they were last looked for
        self.scan_again = 0.0
        self._scan()

    def left(self) -> bool:
        """Whether any process of the tree still lives. Who was seen once is followed when the parent has died."""
        if not any(procfs.same(seen) for seen in self.members):
            self.ended = (time.time(), time.monotonic())
            self._scan()
        elif time.monotonic() >= self.scan_again:
            self._scan()
        return bool(self.members)

    def _scan(self) -> None:
        spent = time.process_time()
        self.members = tree.tree([seen["pid"] for seen in self.members if procfs.same(seen)], self.job.mark)
        self.scan_again = time.monotonic() + max(LOOK, (time.process_time() - spent) / SCAN_SHARE)

    def rung(self, index: int, name: str, wait: float) -> bool:
        """Sends one signal where it can work and waits for the end; whether nothing is left.

        A signal that an earlier life of the job has sent is not sent again: a second one would cut what the first one began. Where that
        life ended between saying it and having done it, the rung is waited out first and the signal sent only then.
        """
        self._scan()
        past = self.job.rung_sent if self.who == "before" else -1
        if index < past:
            return not self.left()
        if index == past and name != "KILL":
            gone = self.wait(name, wait)
            if gone or self.job.rung_done:
                self.sent.append(name)
                self.taken.append(name)
                return gone
        targets, self.tried = self._targets(name), name
        reasons = [diagnose.deaf(seen, name) for seen in targets]
        hearing = [seen for place, seen in enumerate(targets) if reasons[place] is None]
        if targets and (not hearing or (reasons[0] and self._main_now() is not None)):
            self._skip(index, name, reasons[0])
            return not self.left()
        if self.before is None and hearing:
            self.before = diagnose.sample(hearing[0])
        self.job.emit("rung", signal=name, wait=wait, index=index, pids=[seen["pid"] for seen in hearing])
        if not self._send(hearing, name):
            self._skip(index, name, ("no-permission", "eperm"))
            return not self.left()
        self.job.emit("signalled", signal=name, index=index, sync=True)
        gone = self.wait(name, wait)
        if gone or not any(name in look["pending"] for look in (procfs.look(seen["pid"]) for seen in hearing) if look):
            self.taken.append(name)
        return gone

    def _main_now(self) -> Optional[Seen]:
        """The main process as it was last looked at; None when it is gone and only survivors are left."""
        return next((seen for seen in self.members if self.main is not None and _key(seen) == _key(self.main)), None)

    def _targets(self, name: str) -> List[Seen]:
        """KILL is for all of them. Any other signal is for one process of a line, since programs pass it on: a second one cuts a save."""
        main = self._main_now()
        if name == "KILL":
            return list(self.members)
        if main is not None:
            return [addressee(main, self.members)]
        pids = {seen["pid"] for seen in self.members}
        return [seen for seen in self.members if seen["ppid"] not in pids]

    def _skip(self, index: int, name: str, why: Optional[diagnose.Deaf]) -> None:
        word, detail = why or ("unexplained", "")
        self.job.emit("rung-skipped", signal=name, index=index, verdict=word, detail=detail)

    def _send(self, targets: Sequence[Seen], name: str) -> bool:
        """False when none of them could be signalled because none of them may be."""
        refused = 0
        for seen in targets:
            try:
                if sending.send(seen, name):
                    self.sent.append(name)
            except PermissionError:
                refused += 1
        return refused == 0 or refused < len(targets)

    def wait(self, name: Optional[str], wait: float) -> bool:
        """Waits for the end of them all; KILL goes out to those that were born meanwhile. Only time in which this process ran counts."""
        used, tell, looked, pace = 0.0, FIRST_TOLD, time.monotonic(), Pace(self.members)
        killed = {_key(seen) for seen in self.members}
        self.scan_again = 0.0
        while self.left():
            self.job.heed()
            if name == "KILL":
                self._send([seen for seen in self.members if _key(seen) not in killed], name)
                killed.update(_key(seen) for seen in self.members)
            if used >= wait:
                return False
            if used >= tell:
                tell += TOLD_EVERY if name else LINGER_TOLD
                self._tell(used, wait, pace)
            # While one lives the stop is not done, so that the others need no watching.
            watched = next((seen for seen in self.members if procfs.same(seen)), self.members[0])
            sending.wait_for_end(watched, min(LOOK, wait - used, max(sending.POLL, tell - used)))
            now = time.monotonic()
            used, looked = used + min(now - looked, LONGEST_LOOK), now
        return True

    def _tell(self, used: float, wait: float, pace: Pace) -> None:
        shown = procfs.glance(self._shown()["pid"])
        cpu, written = pace.since(self.members)
        state = shown.state if shown is not None else None
        alive = [seen["pid"] for seen in self.members if procfs.same(seen)]
        self.job.emit("waiting", elapsed=round(used, 1), wait=wait, state=state, cpu=cpu, written=written, alive=alive)

    def _shown(self) -> Seen:
        """Of whom the state is told and the verdict is about."""
        main = self._main_now()
        return addressee(main, self.members) if main is not None else self.members[0]

    def say_stopped(self) -> None:
        """The last process of the tree is gone."""
        self.job.stopped_at, end = self.ended if self.ended[0] else (time.time(), time.monotonic())
        ended, by = self._exit(), self.sent[-1] if self.sent else None
        found = diagnose.verdict(self.before, diagnose.gone(), by, exit=ended)
        how = {name: ended[name] for name in ("status", "signal") if name in ended} if ended else None
        self.job.emit(
            "stopped", seconds=round(end - self.began, 3), by=by, verdict=found["verdict"], detail=found["detail"], exit=how,
        )  # fmt: skip

    def _exit(self) -> Optional[Dict[str, Any]]:
        """How the main process ended, as its minder wrote it, or as we know it ourselves when it was our child."""
        if self.main is None:
            return None
        for known in (self.job.record, self.job.launched):
            if known is not None and (known["pid"], known["started"]) == _key(self.main):
                found: Optional[Dict[str, Any]] = self.job.exit_of(*_key(self.main))
                return found
        try:
            pid, status = os.waitpid(self.main["pid"], os.WNOHANG) if self.main["ppid"] == os.getpid() else (0, 0)
        except ChildProcessError:
            return None
        if not pid:
            return None
        return {"signal": os.WTERMSIG(status)} if os.WIFSIGNALED(status) else {"status": os.WEXITSTATUS(status)}

    def say_not_stopped(self) -> None:
        """The ladder has ended and something still lives. Raises NotStopped with the verdict."""
        found = self._verdict()
        if not self.left():  # it ended while it was being looked at
            self.say_stopped()
            return
        facts = dict(found, pids=[seen["pid"] for seen in self.members], taken=self.taken)
        self.job.emit("not-stopped", **facts)
        raise NotStopped(("%(verdict)s %(detail)s" % found).strip(), **facts)

    def _verdict(self) -> diagnose.Verdict:
        """About the addressee; about what it left behind when it is gone."""
        name = self.sent[-1] if self.sent else self.tried
        lately = diagnose.sample(self._shown())
        time.sleep(diagnose.APART)
        now = diagnose.sample(self._shown()) if self._main_now() is not None else diagnose.gone()
        was = self.before["seen"] if self.before else None
        before = self.before if was and (now["seen"] is None or _key(was) == _key(now["seen"])) else lately
        return diagnose.verdict(before, now, name, lately=lately, survivors=self.members)
