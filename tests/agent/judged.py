"""A verdict about one process, as the stop comes to it, from two looks at it."""

from __future__ import annotations

from typing import Any

from deployctl.agent import diagnose, stacks
from deployctl.agent.case import Case, Watched


def judged(before: Any, now: Any, signal: str | None, exit: Any = None) -> Any:
    """`before`: a sample from before the signal, or None; `exit`: how it ended, where that is known."""
    alive = now["seen"] is not None
    stack = (stacks.look(now) if alive and signal else None) or {}
    main, sent = Watched(None, before, before, now), (signal,) if signal else ()
    return diagnose.judge(Case(main, sent, [], (), exit, "", stack.get("frames", ()), (), stack.get("tripped")))
