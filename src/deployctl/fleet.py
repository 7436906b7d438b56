"""Several plans, one target after the other; the worst exit status wins."""

from __future__ import annotations

from collections.abc import Iterable

from deployctl.events import Sink
from deployctl.plan import Plan
from deployctl.runner import run
from deployctl.transports.connect import Connections

WORST_FIRST = (5, 7, 4, 1, 3, 6, 130)


def worst(statuses: Iterable[int]) -> int:
    """The exit status of several targets: the one that a person must hear of first."""
    bad = [status for status in statuses if status]
    return min(bad, key=lambda status: WORST_FIRST.index(status) if status in WORST_FIRST else len(WORST_FIRST), default=0)


def run_all(plans: Iterable[Plan], emit: Sink, patience: float | None = None) -> int:
    """Runs each plan to its end; an interrupted one ends the series. patience: as for `run`."""
    statuses: list[int] = []
    with Connections() as connections:
        for plan in plans:
            statuses.append(run(plan, connections, emit, patience))
            if statuses[-1] in (130, 7):
                break
    return worst(statuses)
