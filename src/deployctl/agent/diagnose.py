"""Why a process still runs, or how it went: a verdict of a fixed list with its evidence. It sends no signal and waits for nothing but,
for a Python's frames, half a second at most.

A verdict is {"verdict", "detail", "confidence" ("proven": the kernel states it, "strong", "hint"), "also" (further verdicts that hold),
"evidence" (lines `name: value`), "unreadable" (names), "next" ("wait", "signal:NAME", "signal-child:PID", "cont", "thaw", "end-tracer",
"fix-filesystem", "restart-container" or "none"), "kill_useless" (true, false or "unknown")}. docs/verdicts/ has a page for each.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence

from . import aftermath, evidence, files, kernel, stacks, taken
from .case import Case, Finding, Verdict, Watched, answer
from .evidence import APART, Sample
from .hearing import UNSTOPPABLE, Deaf, deaf
from .procfs import Seen

__all__ = ["APART", "UNSTOPPABLE", "Case", "Deaf", "Sample", "Verdict", "Watched", "deaf", "gone", "judge", "rates", "sample", "verdict"]
sample, gone, rates = evidence.sample, evidence.gone, evidence.rates


def verdict(
    before: Optional[Sample],
    now: Sample,
    signal: Optional[str],
    *,
    lately: Optional[Sample] = None,
    survivors: Sequence[Seen] = (),
    exit: Optional[Dict[str, Any]] = None,
    after: Sequence[str] = (),
) -> Verdict:
    """The verdict about one process of a stop: before the first signal, lately (a little ago, for the rates) and now.

    signal: the last one that was sent or tried; after: all of them, where that is known. survivors: what lives of the tree.
    """
    main = Watched(None, before, lately or before, now)
    below = [seen for seen in survivors if now["seen"] is not None and seen["pid"] != now["seen"]["pid"]]
    kin = [Watched(None, None, None, taken) for taken in map(evidence.sample, below) if taken["seen"] is not None]
    sent = tuple(after) or ((signal,) if signal else ())
    printed = files.printed(before, now) if before and now["seen"] is not None else ""
    stack = (stacks.look(now) if now["seen"] is not None and sent else None) or {}
    return judge(Case(main, sent, kin, survivors, exit, printed, stack.get("frames", ()), (), stack.get("tripped")))


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
