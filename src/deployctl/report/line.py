"""One line of the screen."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """One line of the screen. `mood` chooses the colour; `more` are further lines below it."""

    label: str
    text: str
    mood: str = "plain"
    more: tuple[str, ...] = ()
