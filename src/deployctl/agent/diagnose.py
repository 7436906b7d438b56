"""Why a process still runs, or how it went: a verdict of a fixed list with its evidence. It sends no signal and waits for nothing.

A verdict is {"verdict", "detail", "confidence" ("proven", "strong" or "hint"), "evidence" (lines `name: value`), "next" (what helps:
"wait", "signal:NAME", "cont", "end-tracer", "fix-filesystem", "restart-container" or "none"), "kill_useless" (true, false, null: unknown)}.
"""

from __future__ import annotations

import os
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from . import procfs
from .procfs import Seen

Verdict = Dict[str, Any]
Sample = Dict[str, Any]
Deaf = Tuple[str, str]  # verdict and detail
UNSTOPPABLE = ("KILL", "STOP", "CONT")  # the kernel acts on them itself: no handler, no mask. Source: signal(7)
CRASHES = (4, 6, 7, 8, 11)  # ILL, ABRT, BUS, FPE, SEGV
APART = 0.5  # seconds between two samples, at least, before a rate means anything
VFORK = ("kernel_clone", "_do_fork", "do_fork", "wait_for_vfork_done")


class Case(NamedTuple):
    """All that the rules look at."""

    before: Optional[Sample]  # before the first signal
    lately: Optional[Sample]  # a little ago, for the rates
    now: Sample
    signal: Optional[str]  # the last one that was sent or tried
    survivors: Sequence[Seen]  # what is left of the tree when the main process is gone
    exit: Optional[Dict[str, Any]]  # {"status"} or {"signal"} of the main process, when it is known

    @property
    def seen(self) -> Seen:
        """The process now; only rules that stand behind `_gone` may ask."""
        return dict(self.now["seen"])


def sample(seen: Seen) -> Sample:
    """{"at" (monotonic seconds), "seen" (None when that process is gone), "usage", "wchan"}: the process at this moment, dead or alive."""
    now = procfs.look(seen["pid"])
    if now is None or now["started"] != seen["started"]:
        return gone()
    try:
        wchan = procfs.text(procfs.read("/proc/%d/wchan" % seen["pid"])).strip("\0\n")
    except OSError:
        wchan = ""
    # "0" means running, or not permitted. Source: proc_pid_wchan(5)
    return {"at": time.monotonic(), "seen": now, "usage": procfs.usage(seen["pid"]), "wchan": None if wchan in ("", "0") else wchan}


def gone() -> Sample:
    """The sample of a process that is not there."""
    return {"at": time.monotonic(), "seen": None, "usage": None, "wchan": None}


def deaf(seen: Seen, signal: str) -> Optional[Deaf]:
    """(verdict, detail) when the signal cannot reach or move the process, which is known before it is sent; None when it may."""
    return _forbidden(seen) or _held(seen, signal) or _unheard(seen, signal)


def verdict(
    before: Optional[Sample],
    now: Sample,
    signal: Optional[str],
    *,
    lately: Optional[Sample] = None,
    survivors: Sequence[Seen] = (),
    exit: Optional[Dict[str, Any]] = None,
) -> Verdict:
    """The first rule that holds, in the order of the questions. The fields of Case say what is what."""
    case = Case(before, lately or before, now, signal, survivors, exit)
    return next(found for found in (rule(case) for rule in RULES) if found is not None)


def rates(earlier: Optional[Sample], now: Sample) -> Tuple[Optional[float], Optional[float]]:
    """(share of one core, bytes written a second) between two samples; None where it cannot be known."""
    if earlier is None or not earlier["usage"] or not now["usage"] or now["at"] - earlier["at"] < APART:
        return None, None
    seconds = now["at"] - earlier["at"]
    old, new = earlier["usage"], now["usage"]
    cpu = (new["cpu_ticks"] - old["cpu_ticks"]) / procfs.TICKS / seconds
    if old["written_bytes"] is None or new["written_bytes"] is None:
        return cpu, None
    return cpu, (new["written_bytes"] - old["written_bytes"]) / seconds


def _forbidden(seen: Seen) -> Optional[Deaf]:
    try:
        os.kill(seen["pid"], 0)
    except PermissionError:
        return "no-permission", "eperm"
    except OSError:
        pass
    return None


def _held(seen: Seen, signal: str) -> Optional[Deaf]:
    """Stopped processes keep every signal but KILL until they go on; CONT does not move one that a tracer holds."""
    if seen["state"] == "t" and signal != "KILL":
        return "traced", "tracing-stop"
    if seen["state"] == "T" and signal not in UNSTOPPABLE:
        return "suspended", "stop-signal"
    return None


def _unheard(seen: Seen, signal: str) -> Optional[Deaf]:
    """Dropped at the sender (ignored, or pid 1 without a handler), or queued where nobody can take it.

    From inside its namespace even KILL is dropped for pid 1; from the parent namespace KILL and STOP work.
    Source: signal(7), pid_namespaces(7).
    """
    first = seen["pid1"] and signal not in seen["caught"]
    if signal in UNSTOPPABLE:
        return ("signal-ignored", "pid1") if first and seen["pid"] == 1 and signal != "CONT" else None
    if signal in seen["ignored"]:
        return "signal-ignored", _origin(seen, signal)
    if signal in seen["blocked"]:
        return None if _takes_by_descriptor(seen["pid"]) else ("signal-blocked", "every-thread")
    return ("signal-ignored", "pid1") if first else None


def _origin(seen: Seen, signal: str) -> str:
    """'inherited': INT with QUIT is what a shell's `&` leaves, HUP what nohup leaves; else 'own'."""
    by_shell = signal in ("INT", "QUIT") and {"INT", "QUIT"} <= set(seen["ignored"])
    return "inherited" if by_shell or signal == "HUP" else "own"


def _takes_by_descriptor(pid: int) -> bool:
    """Whether it has a signalfd, or may have one: what cannot be read is not known to be absent. Source: signalfd(2).

    A thread in sigwait needs no look: while it waits the kernel takes the signal out of its mask.
    """
    base = "/proc/%d/fd/" % pid
    try:
        names = os.listdir(base)
    except OSError:
        return True
    return any(_target(base + name) == "anon_inode:[signalfd]" for name in names)


def _target(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _gone(case: Case) -> Optional[Verdict]:
    if case.now["seen"] is not None:
        return None
    if case.survivors:
        session = case.before["seen"]["session"] if case.before and case.before["seen"] else None
        within = all(seen["session"] == session for seen in case.survivors)
        left = ["left: pid %d %s %s" % (seen["pid"], seen["state"], " ".join(seen["argv"])[:120]) for seen in case.survivors]
        detail = "same-session" if within else "own-session"
        return _answer(case, ("children-survive", detail), "proven", "signal:TERM", useless=False, facts=left)
    ended = (case.exit or {}).get("signal")
    if ended in CRASHES:
        return _answer(case, ("stopped-dirty", "crashed"), "proven", "none")
    if ended == 9 or (case.signal == "KILL" and "status" not in (case.exit or {})):
        return _answer(case, ("stopped-dirty", "killed"), "proven", "none")
    was = case.before["seen"] if case.before else None
    if was and case.signal and case.signal not in was["caught"]:
        return _answer(case, ("stopped", "default-action"), "strong", "none")
    return _answer(case, ("stopped", "" if case.signal else "by-itself"), "proven" if case.exit else "strong", "none")


def _no_permission(case: Case) -> Optional[Verdict]:
    found = _forbidden(case.seen)
    return found and _answer(case, found, "proven", "none", facts=["user: %d, ours %d" % (case.seen["uid"], os.geteuid())])


def _zombie(case: Case) -> Optional[Verdict]:
    if case.seen["state"] not in procfs.DEAD:
        return None
    return _answer(case, ("zombie", "parent"), "proven", "restart-container" if case.seen["ppid"] == 1 else "none", useless=True)


def _stopped_by_others(case: Case) -> Optional[Verdict]:
    found = _held(case.seen, case.signal or "INT")
    return found and _answer(case, found, "proven", "cont" if found[0] == "suspended" else "end-tracer", useless=False)


def _uninterruptible(case: Case) -> Optional[Verdict]:
    """D twice, with no work done between: one D alone is everyday (fsync). Whether KILL helps is known only when it was tried."""
    states = [taken["seen"]["state"] for taken in (case.lately, case.now) if taken and taken["seen"]]
    cpu, written = rates(case.lately, case.now)
    if states != ["D", "D"] or cpu is None or cpu > 0.01 or written:
        return None
    vfork = case.now["wchan"] in VFORK
    useless = True if case.signal == "KILL" else False if vfork else None
    helps = "signal:KILL" if vfork else "fix-filesystem"
    return _answer(case, ("uninterruptible", "vfork" if vfork else "io"), "proven", helps, useless=useless)


def _not_heard(case: Case) -> Optional[Verdict]:
    found = _unheard(case.seen, case.signal) if case.signal else None
    if found is None:
        return None
    useless = case.seen["pid1"] and case.seen["pid"] == 1
    return _answer(case, found, "proven", _better(case.seen), useless=useless)


def _better(seen: Seen) -> str:
    """The signal that is left: one that has a handler, else one whose default action ends the process."""
    heard = [name for name in ("INT", "TERM") if not _unheard(seen, name)]
    handled = [name for name in heard if name in seen["caught"]]
    if handled or "TERM" in heard:
        return "signal:" + (handled or ["TERM"])[0]
    return "restart-container" if _unheard(seen, "KILL") else "signal:KILL"


def _traced(case: Case) -> Optional[Verdict]:
    """A tracer that lets it run may still eat its signals."""
    return _answer(case, ("traced", "runs"), "hint", "end-tracer", useless=False) if case.seen["traced"] else None


def _unexplained(case: Case) -> Verdict:
    return _answer(case, ("unexplained", ""), "hint", "wait", useless=True if case.signal == "KILL" else None)


# The order of the questions: the first rule that holds is the verdict.
RULES: Tuple[Callable[[Case], Optional[Verdict]], ...] = (
    _gone, _no_permission, _zombie, _stopped_by_others, _uninterruptible, _not_heard, _traced, _unexplained,
)  # fmt: skip


def _answer(
    case: Case, found: Deaf, confidence: str, helps: str, *, useless: Optional[bool] = None, facts: Sequence[str] = ()
) -> Verdict:
    return {
        "verdict": found[0], "detail": found[1], "confidence": confidence, "evidence": [*facts, *_evidence(case)], "next": helps,
        "kill_useless": useless,
    }  # fmt: skip


def _evidence(case: Case) -> List[str]:
    """What was read, one fact a line; what could not be read is named, since it says nothing."""
    seen = case.now["seen"]
    if seen is None:
        return ["exit: %s %s" % (name, value) for name, value in (case.exit or {}).items() if name in ("status", "signal")]
    was = case.before["seen"]["state"] if case.before and case.before["seen"] else "?"
    cpu, written = rates(case.lately, case.now)
    lines = ["state: %s, before %s" % (seen["state"], was), "threads: %d" % seen["threads"]]
    lines += ["%s: %s" % (name, " ".join(seen[name])) for name in ("ignored", "caught", "blocked", "pending") if seen[name]]
    lines += ["parent: %d" % seen["ppid"]] if seen["state"] in procfs.DEAD else []
    lines += ["tracer: pid %d" % seen["traced"]] if seen["traced"] else []
    lines += ["waits in: %s" % case.now["wchan"]] if case.now["wchan"] else []
    lines += ["cpu: %.2f of a core" % cpu] if cpu is not None else []
    lines += ["written: %d bytes/s" % written] if written is not None else []
    unread = seen["unreadable"] + (["io"] if case.now["usage"] and case.now["usage"]["written_bytes"] is None else [])
    return lines + (["unreadable: %s" % " ".join(unread)] if unread else [])
