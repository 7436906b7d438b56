"""One stop under way: which processes are meant, what was sent to them, what is left of them, and the wait for their end."""

from __future__ import annotations

import os
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

from . import evidence, files, launchers, procfs, sending, tree
from .case import Verdict
from .launchers import Line
from .looks import Looks
from .pace import Pace
from .procfs import Seen

LONGEST_LOOK = 0.5  # seconds of a wait that one look may use up: time in which we were frozen does not count
LOOK = 0.4  # seconds that one look waits for an end, at most
SCAN_SHARE = 0.003  # of a core: what looking for new processes of the tree may cost during a wait
FIRST_TOLD, TOLD_EVERY = 2.0, 5.0  # seconds of a wait
LINGER_TOLD = 60.0  # the same while a job lingers


def top(job: Any, who: str) -> Optional[Seen]:
    """The top process of the workload as it is now: since prepare looked, somebody may have started or ended one."""
    if who == "launched":
        return job.launched if job.launched is not None and procfs.same(job.launched) else None
    known = job.before if job.before is not None and procfs.same(job.before) else job.record
    found = tree.find(job.workload, known, job.mark)
    return found.top if found.how != "mark" else None


def _gone(job: Any, who: str) -> Optional[Seen]:
    """The top process that there was, when it has ended: what it left behind is still to be ended."""
    known: Optional[Seen] = job.launched if who == "launched" else job.before
    return known if known is not None and not procfs.same(known) else None


def key(seen: Seen) -> Tuple[int, int]:
    """What names one process for good."""
    return seen["pid"], seen["started"]


class Climb:
    """One stop under way: who is meant, what was sent, what is left."""

    def __init__(self, job: Any, who: str) -> None:
        found = top(job, who)
        self.job, self.who, self.top = job, who, found or _gone(job, who)
        self.began = time.monotonic()
        self.ended = (0.0, 0.0)  # when nothing was left: since the epoch, monotonic
        self.sent: List[str] = []
        self.taken: List[str] = []  # of those sent, what does not wait in a queue
        self.taken_at: Optional[float] = None  # monotonic
        self.tried: Optional[str] = None
        self.looks = Looks(job.samples)
        self.addressee: Optional[Seen] = None  # the first of those that the last signal was for
        self.held: Optional[Seen] = None  # an agent that is kept from acting while its ranks end
        self.leaders: Set[int] = set()  # every pid that was of the tree
        self.members: List[Seen] = [found] if found is not None else []  # the living ones when they were last looked for
        self.scan_again = 0.0
        self.scan()
        self.about = self.top or next(iter(self.members), None)  # of several lines that survive one, which stands for all
        self.gpu = any(files.look(seen["pid"], [])["gpu"] for seen in self.members)

    def scan(self) -> None:
        """Looks for the members anew."""
        spent = time.process_time()
        self.members = tree.tree([seen["pid"] for seen in self.members if procfs.same(seen)], self.job.mark, self.leaders)
        self.leaders.update(seen["pid"] for seen in self.members)
        self.scan_again = time.monotonic() + max(LOOK, (time.process_time() - spent) / SCAN_SHARE)

    def left(self) -> bool:
        """Whether any process of the tree still lives. Who was seen once is followed when the parent has died."""
        if not any(procfs.same(seen) for seen in self.members):
            self.ended = (time.time(), time.monotonic())
            self.scan()
        elif time.monotonic() >= self.scan_again:
            self.scan()
        return bool(self.members)

    def top_now(self) -> Optional[Seen]:
        """The top process as it was last looked at; None when it is gone and only survivors are left."""
        return next((seen for seen in self.members if self.top is not None and key(seen) == key(self.top)), None)

    def line(self) -> Optional[Line]:
        """From the top to the main process; None when the top is gone."""
        found = self.top_now()
        return launchers.line(found, self.members) if found is not None else None

    def targets(self, name: str, to: str) -> List[Seen]:
        """KILL is for all of them, the top first. Any other signal is for one process of a line, since programs pass it on."""
        line = self.line()
        if name == "KILL":
            return list(self.members)
        if line is not None:
            return launchers.meant(to, line)
        pids = {seen["pid"] for seen in self.members}
        return [seen for seen in self.members if seen["ppid"] not in pids]

    def shown(self) -> Seen:
        """Of whom the state is told and the verdict is about."""
        if self.addressee is not None and procfs.same(self.addressee):
            return self.addressee
        line = self.line()
        return line.main if line is not None else self.members[0]

    def recall(self, name: str) -> None:
        """Notes a signal that an earlier life of the job has sent."""
        self.sent.append(name)
        self.take(name, ())

    def send(self, targets: Sequence[Seen], name: str) -> bool:
        """False when none of them could be signalled because none of them may be."""
        refused = 0
        for seen in targets:
            try:
                if sending.send(seen, name):
                    self.sent.append(name)
            except PermissionError:
                refused += 1
        return refused == 0 or refused < len(targets)

    def take(self, name: str, targets: Sequence[Seen]) -> None:
        """Notes that a signal was taken, unless it waits in a queue of one of those that live."""
        looks = (procfs.look(seen["pid"]) for seen in targets if procfs.same(seen))
        if name not in self.taken and not any(name in look["pending"] for look in looks if look):
            self.taken.append(name)
            self.taken_at = self.taken_at or time.monotonic()

    def wait(self, name: Optional[str], seconds: float, enough: Optional[Callable[[float], Optional[float]]] = None) -> bool:
        """Waits for the end of them all; KILL goes out to those that were born meanwhile. Only time in which this process ran counts.

        enough: asked when the time is up and at each telling, with the seconds used; the answer is a new bound, or None for none.
        """
        used, tell, looked, pace = 0.0, FIRST_TOLD, time.monotonic(), Pace(self.members)
        killed = {key(seen) for seen in self.members}
        self.scan_again = 0.0
        while self.left():
            self.job.heed()
            if name == "KILL":
                self.send([seen for seen in self.members if key(seen) not in killed], name)
                killed.update(key(seen) for seen in self.members)
            self._end_the_held()
            if used < min(seconds, tell):
                used, looked = self._doze(min(seconds, tell) - used, used, looked)
                continue
            bound = enough(used) if enough is not None else None
            seconds = seconds if bound is None else bound
            if used >= seconds:
                return False
            if used >= tell:
                self._tell(used, seconds, pace)
                tell += TOLD_EVERY if name else LINGER_TOLD
        return True

    def _doze(self, seconds: float, used: float, looked: float) -> Tuple[float, float]:
        """Waits for the end of one of them: while it lives the stop is not done, so that the others need no watching."""
        watched = next((seen for seen in self.members if procfs.same(seen)), self.members[0])
        sending.wait_for_end(watched, min(LOOK, max(sending.POLL, seconds)))
        now = time.monotonic()
        return used + min(now - looked, LONGEST_LOOK), now

    def _end_the_held(self) -> None:
        """An agent that was held would start new ranks, or wait for ever: when its ranks are gone it is ended as it stands."""
        if self.held is not None and not any(seen["ppid"] == self.held["pid"] for seen in self.members if procfs.same(seen)):
            held, self.held = self.held, None
            self.send([held], "KILL")

    def let_go(self) -> None:
        """Lets an agent go on that was held."""
        if self.held is not None:
            sending.send(self.held, "CONT")
            self.held = None

    def _tell(self, used: float, wait: float, pace: Pace) -> None:
        now = procfs.glance(self.shown()["pid"])
        done = pace.since(self.members)
        alive = [seen["pid"] for seen in self.members if procfs.same(seen)]
        taken = round(time.monotonic() - self.taken_at, 1) if self.taken_at is not None else None
        self.job.emit(
            "waiting", elapsed=round(used, 1), wait=wait, state=now.state if now is not None else None, cpu=done.cpu, written=done.written,
            alive=alive, taken=taken, growing=done.growing,
        )  # fmt: skip

    def verdict(self) -> Verdict:
        """About the addressee; about what it left behind when it is gone. Without an earlier look it takes two, half a second apart."""
        about = self.shown()
        if not self.looks.due():
            self.looks.again([about, *self.members])
            time.sleep(evidence.APART)
        signals = self.sent or ([self.tried] if self.tried else [])
        gone = self.top_now() is None and self.top is not None
        return self.looks.verdict(self.top if gone and self.top else about, gone, self.members, list(dict.fromkeys(signals)))

    def ended_how(self) -> Tuple[Verdict, Optional[Dict[str, Any]]]:
        """(the verdict about a tree of which nothing is left, {"status"} or {"signal"} of its top where that is known)."""
        assert self.about is not None
        how = self.exit()
        return self.looks.verdict(self.about, True, (), list(dict.fromkeys(self.sent)), how), how

    def exit(self) -> Optional[Dict[str, Any]]:
        """How the top process ended, as its minder wrote it, or as we know it ourselves when it was our child."""
        if self.about is None:
            return None
        for known in (self.job.record, self.job.launched):
            if known is not None and (known["pid"], known["started"]) == key(self.about):
                found: Optional[Dict[str, Any]] = self.job.exit_of(*key(self.about))
                return found
        try:
            pid, status = os.waitpid(self.about["pid"], os.WNOHANG) if self.about["ppid"] == os.getpid() else (0, 0)
        except ChildProcessError:
            return None
        if not pid:
            return None
        return {"signal": os.WTERMSIG(status)} if os.WIFSIGNALED(status) else {"status": os.WEXITSTATUS(status)}
