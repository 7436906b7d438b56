"""Why a process still runs, or how it went: a verdict of a fixed list with its evidence. It sends no signal and waits for nothing.

A verdict is {"verdict", "detail", "confidence" ("proven": the kernel states it, "strong", "hint"), "also" (further verdicts that hold),
"evidence" (lines `name: value`), "unreadable" (names), "next" ("wait", "signal:NAME", "signal-child:PID", "cont", "thaw", "end-tracer",
"fix-filesystem", "restart-container" or "none"), "kill_useless" (true, false or "unknown")}. docs/verdicts/ has a page for each.
"""

from __future__ import annotations

from typing import List

from . import aftermath, kernel, taken
from .case import Case, Finding, Verdict, answer


def judge(case: Case) -> Verdict:
    """The first rule that holds, in the order of the questions, and the names of the others that hold as well."""
    return answer(case, _findings(case))


def _findings(case: Case) -> List[Finding]:
    gone = aftermath.judge(case)
    if gone:
        return gone
    final = kernel.final(case)
    if final is not None:
        return [final]
    found = kernel.holding(case)
    if any(not one["aside"] for one in found):
        return found
    if not case.signals:
        return [*taken.quiet(case), *found]
    return [taken.judge(case) if case.heard() else taken.unexplained(case), *found]
