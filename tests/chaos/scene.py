"""A run under way, and what a round does to it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.chaos import claims
from tests.chaos.choices import Choice
from tests.chaos.eyes import Sight
from tests.chaos.ground import Ground
from tests.chaos.points import Event, Watch

Controller = subprocess.Popen[bytes]


@dataclass
class Scene:
    """`struck_at` and `kills` are seconds since the epoch, as those of events: of the fault, and of each trainer that it killed."""

    ground: Ground
    choice: Choice
    controller: Controller
    watch: Watch
    victim: Sight | None = None  # found before the point is reached, so that the fault comes at once
    second: Controller | None = None
    person: Controller | None = None  # who takes the run back
    hit: bool = False
    struck_at: float = 0.0
    kills: list[float] = field(default_factory=list)
    mend: list[Callable[[], object]] = field(default_factory=list)

    @property
    def run(self) -> str:
        """The id of the first run; "" before its first word."""
        return self.watch.run

    @property
    def events(self) -> list[Event]:
        """What the target has of it."""
        return claims.events_of(self.ground, self.run) if self.run else []

    def said(self, *words: str) -> bool:
        """Whether the target has one of these events of the run."""
        return any(event["what"] in words for event in self.events)


def within(seconds: float, look: Callable[[], object]) -> bool:
    """Whether `look` came true before the deadline."""
    until = time.monotonic() + seconds
    while not look():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True
