"""Errors as lines: where, what, what to do."""

from __future__ import annotations

from typing import Any

from deployctl.errors import DeployError
from deployctl.report.text import safe


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
    return f"killed by signal {ended['signal']}" if "signal" in ended else f"status {ended['status']}"


def _lines(where: str, what: str, todo: str) -> list[str]:
    head = f"error: {safe(where)}: {safe(what, 4000)}" if where else f"error: {safe(what, 4000)}"
    return [head, f"   do: {safe(todo)}"] if todo else [head]
