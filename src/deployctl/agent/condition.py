"""What a check waits for: one condition each. Here the base of all, and those that the log alone decides."""

from __future__ import annotations

import re
from typing import Iterable, List, Optional, Pattern

from .logs import LogReader


class Condition:
    """One thing that must come about.

    name says which; met, whether it has; seen, what was seen last in words; broken, why it cannot be any more.
    pace: seconds between two looks.
    """

    pace = 0.0

    def __init__(self, name: str, seen: str) -> None:
        self.name, self.seen, self.met = name, seen, False
        self.broken: Optional[str] = None

    def feed(self, lines: Iterable[str]) -> None:
        """Takes new lines of the log."""

    def look(self, left: float) -> None:
        """Looks anew, and sets `met` and `seen`. left: seconds until the check's deadline."""
        raise NotImplementedError

    def close(self) -> None:
        """Ends what it has started."""


class Line(Condition):
    """Passes when a line of this launch's log matches."""

    def __init__(self, pattern: str) -> None:
        super().__init__("log", "no line of the log matches '%s'" % pattern)
        self.line: Optional[str] = None
        self._pattern = re.compile(pattern)

    def feed(self, lines: Iterable[str]) -> None:
        """Takes the first line that matches."""
        if self.line is None:
            self.line = next((text for text in lines if self._pattern.search(text)), None)

    def look(self, left: float) -> None:
        """The line is there, or not."""
        self.met = self.line is not None


class Absent(Condition):
    """Is broken by a line of this launch's log that matches; passes when the log was read to its end."""

    def __init__(self, patterns: List[str], reader: LogReader) -> None:
        super().__init__("absent", "the log grows faster than it can be read")
        self._patterns: List[Pattern[str]] = [re.compile(pattern) for pattern in patterns]
        self._reader = reader

    def feed(self, lines: Iterable[str]) -> None:
        """Looks for what must not be there."""
        for line in lines:
            if self.broken is None and any(pattern.search(line) for pattern in self._patterns):
                self.broken = "the log says '%s'" % line.strip()[:400]

    def look(self, left: float) -> None:
        """It holds as far as was read."""
        self.met = self.broken is None and not self._reader.behind
