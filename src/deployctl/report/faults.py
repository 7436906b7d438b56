"""Errors as lines: where, what, what to do."""

from __future__ import annotations

import signal
from typing import Any

from deployctl.errors import DeployError
from deployctl.report.text import count, safe


def lines(error: DeployError) -> list[str]:
    """`error: where: what` and `   do: what to do`."""
    return _lines(error.where, error.what, error.todo)


def event_lines(event: dict[str, Any]) -> list[str]:
    """The same for a `failed` event, and the last lines of the log where it brings them."""
    found = _lines(event["where"], event["why"], event["todo"])
    ended = event.get("exit")
    if ended:
        found.append(f"  exit: {how_ended(ended)}")
    found += [f"   log: {safe(line)}" for line in event.get("tail") or []]
    return found


def how_ended(ended: dict[str, Any]) -> str:
    """How a program ended, as its minder wrote it."""
    how = f"killed by {signal_shown(ended['signal'])}" if "signal" in ended else f"status {ended['status']}"
    return how + out_of_memory(ended)


def signal_shown(number: int) -> str:
    """'SIGKILL'; 'signal 99' for a number without a name here."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {safe(number)}"


def out_of_memory(ended: dict[str, Any]) -> str:
    """What to add where the kernel has killed for memory while the program ran; nothing where it has not."""
    kills = ended.get("oom_kills")
    if not kills:
        return ""
    short = f", the {safe(ended.get('memory_of', 'machine'))} was out of memory"
    return short if ended.get("signal") == signal.SIGKILL else f"{short} ({count(kills, 'process')} killed for it)"


def _lines(where: str, what: str, todo: str) -> list[str]:
    head = f"error: {safe(where)}: {safe(what, 4000)}" if where else f"error: {safe(what, 4000)}"
    return [head, f"   do: {safe(todo)}"] if todo else [head]
