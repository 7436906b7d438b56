"""How fast a run goes. Standard library only, Python 3.8 and newer."""

from __future__ import annotations

import time


class Meter:
    """Tokens per second since the start."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._total = 0

    def add(self, tokens: int) -> None:
        """Counts the tokens of one step that has just ended."""
        self._total += tokens

    def rate(self) -> float:
        """Tokens per second between the start and now."""
        return self._total / max(time.monotonic() - self._begun, 1e-6)
