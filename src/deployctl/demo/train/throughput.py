"""How fast a run goes, and where its time goes. Standard library only, Python 3.8 and newer."""

from __future__ import annotations

import collections
import contextlib
import time
from collections.abc import Iterator


class Meter:
    """Tokens per second over the last few steps."""

    def __init__(self, window: int = 20) -> None:
        self._total = 0
        self._marks: collections.deque[tuple[float, int]] = collections.deque([(time.monotonic(), 0)], maxlen=window + 1)

    def add(self, tokens: int) -> None:
        """Counts the tokens of one step that has just ended."""
        self._total += tokens
        self._marks.append((time.monotonic(), self._total))

    def rate(self) -> float:
        """Tokens per second between the oldest and the newest step of the window."""
        (begun, before), (ended, after) = self._marks[0], self._marks[-1]
        return (after - before) / max(ended - begun, 1e-6)


class Profile:
    """Adds up the seconds that each part of the work takes; a report is due every `interval` seconds, never with 0."""

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._begun = time.monotonic()
        self._spent: dict[str, float] = {}

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Counts the time inside the `with` as the part `name`."""
        begun = time.monotonic()
        try:
            yield
        finally:
            self._spent[name] = self._spent.get(name, 0.0) + time.monotonic() - begun

    def due(self) -> bool:
        """Is it time for a report?"""
        return self._interval > 0 and time.monotonic() - self._begun >= self._interval

    def report(self) -> str:
        """'data 1% compute 95% save 4%' of the time since the last report; the next one begins at nothing."""
        whole = max(time.monotonic() - self._begun, 1e-6)
        line = " ".join(f"{name} {100 * spent / whole:.0f}%" for name, spent in self._spent.items())
        self._begun, self._spent = time.monotonic(), {}
        return line
