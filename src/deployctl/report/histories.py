"""`deployctl history` and runs without an end, for a person."""

from __future__ import annotations

from typing import Any

from deployctl.report.lines import ENDS
from deployctl.report.text import clock, safe


def lines(target: str, runs: list[dict[str, Any]]) -> list[str]:
    """One line a run, the oldest first."""
    return [_run(run) for run in runs] or [f"{target}: no run is known here"]


def _run(run: dict[str, Any]) -> str:
    begin, end = run["begin"], run["end"]
    parts = [safe(run["run"]), safe(run["workload"])]
    if begin:
        who = begin["who"]
        parts += [clock(begin["t"]), f"{safe(who.get('user'))}@{safe(who.get('host'))}", safe(begin["playbook"])]
    if end:
        parts.append(f"status {end['status']}: {ENDS.get(end['outcome'], safe(end['outcome']))}")
    elif run["alive"]:
        parts.append(f"at work, in {safe(run['op'])}")
    else:
        parts.append(f"no end: it was killed in {safe(run['op'])}")
    return "  ".join(parts)
