"""Rules for a process that is gone: how it ended, and what of it is left."""

from __future__ import annotations

from typing import List, Optional

from .case import Case, Finding, finding

CRASHES = (4, 6, 7, 8, 11)  # ILL, ABRT, BUS, FPE, SEGV


def judge(case: Case) -> List[Finding]:
    """The findings about a process that is not there any more, the first one first; empty for one that is."""
    if case.main.now["seen"] is not None:
        return []
    return [found for found in (_reused(case), _survivors(case), _respawned(case), _held(case), _dirty(case)) if found] or [_stopped(case)]


def _reused(case: Case) -> Optional[Finding]:
    stranger = (case.left or {}).get("stranger")
    if stranger is None:
        return None
    facts = ["pid %d: %s" % (stranger["pid"], " ".join(stranger["argv"])[:120]), "started: %d" % stranger["started"]]
    was = case.before["seen"] if case.before else None
    facts += ["started before: %d, %s" % (was["started"], " ".join(was["argv"])[:120])] if was else []
    return finding(("pid-reused", (case.left or {}).get("how", "started-later")), "proven", "none", True, facts)


def _survivors(case: Case) -> Optional[Finding]:
    if not case.survivors:
        return None
    was = case.before["seen"] if case.before else None
    session = was["session"] if was else None
    within = all(seen["session"] == session for seen in case.survivors)
    left = ["left: pid %d %s %s" % (seen["pid"], seen["state"], " ".join(seen["argv"])[:120]) for seen in case.survivors]
    helps = "signal-child:%d" % case.survivors[0]["pid"]
    return finding(("children-survive", "same-session" if within else "own-session"), "proven", helps, False, left)


def _respawned(case: Case) -> Optional[Finding]:
    again = (case.left or {}).get("respawned")
    if again is None:
        return None
    facts = ["again: pid %d, started after the look before, %s" % (again["pid"], " ".join(again["argv"])[:120])]
    facts.append("its parent: pid %d %s" % (again["ppid"], again["by"]))
    return finding(("respawned", again["how"]), "strong", "none", True, facts)


def _held(case: Case) -> Optional[Finding]:
    held = (case.left or {}).get("held", [])
    if not held:
        return None
    facts = ["held: %s" % " ".join("%s %s" % pair for pair in sorted(one.items())) for one in held]
    return finding(("resource-held", held[0]["kind"]), "strong", "wait" if held[0]["kind"] == "gpu" else "none", True, facts)


def _dirty(case: Case) -> Optional[Finding]:
    """Killed, not finished: by the kernel for memory, by a signal that nothing can handle, in the middle of a file."""
    left, ended = case.left or {}, (case.exit or {}).get("signal")
    halves = ["half written: %s" % path for path in left.get("halves", [])]
    if left.get("oom"):
        return finding(("stopped-dirty", "oom"), "proven", "none", True, ["oom_kill: %d more than before" % left["oom"], *halves])
    if ended in CRASHES:
        return finding(("stopped-dirty", "crashed"), "proven", "none", True, halves)
    if ended == 9 or (case.signal == "KILL" and "status" not in (case.exit or {})):
        return finding(("stopped-dirty", "killed"), "proven", "none", True, halves)
    was = case.before["seen"]["caught"] if case.before else []
    if len(case.signals) > 1 and case.signals[0] in was and case.signals[-1] not in was:
        return finding(("stopped-dirty", "second-signal"), "hint", "none", True, halves)
    if halves:
        return finding(("stopped-dirty", "half-written"), "strong", "none", True, halves)
    return None


def _stopped(case: Case) -> Finding:
    was = case.before["seen"] if case.before else None
    if was is None and case.exit is None:
        return finding(
            ("stopped", "" if case.signal else "by-itself"), "hint", "none", True, ["no such process, and no earlier look at it"]
        )
    if was and case.signal and case.signal not in was["caught"]:
        return finding(("stopped", "default-action"), "strong", "none", True)
    by_itself = case.signal is None and case.left is None  # who looks later does not know what was sent
    return finding(("stopped", "by-itself" if by_itself else ""), "proven" if case.exit else "strong", "none", True)
