"""The event boundaries of a run, and the wait for one of them."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.chaos.ground import Ground

Event = dict[str, Any]
POINTS = (
    "begin", "connected", "locked", "found", "staged", "verified", "cutover", "op:stop", "rung", "stopped", "op:golive", "live",
    "op:launch", "launched", "op:check", "checked", "end",
)  # fmt: skip
POLL = 0.002  # seconds


def name_of(event: Event) -> str:
    """The point at which an event stands."""
    return f"op:{event['op']}" if event["what"] == "op" else str(event["what"])


class Lines:
    """The events that were added to a file since the last look; a torn line waits for its rest."""

    def __init__(self, path: Path) -> None:
        self.path, self._offset = path, 0

    def new(self) -> list[Event]:
        """Whole lines only."""
        try:
            with self.path.open("rb") as stream:
                stream.seek(self._offset)
                data = stream.read()
        except OSError:
            return []
        whole, newline, _ = data.rpartition(b"\n")
        self._offset += len(whole) + len(newline)
        return [json.loads(line) for line in whole.splitlines()]


class Watch:
    """Follows one run in both of its files: what the controller says is in its journal first, what the job says in the target's."""

    def __init__(self, ground: Ground, controller: subprocess.Popen[bytes], known: set[str]) -> None:
        self.ground, self.controller, self.known = ground, controller, known
        self.run = ""
        self._files: list[Lines] = []

    def reach(self, point: str, within: float, ready: Callable[[], object]) -> bool:
        """Waits until the point was passed; False when the run ended before it, or at the deadline. `ready`: called at each event."""
        until = time.monotonic() + within
        while time.monotonic() < until:
            over = self.controller.poll() is not None
            news = self._news()
            if any(name_of(event) == point for event in news):
                return True
            if over:
                return False
            if news:
                ready()
            time.sleep(POLL)
        return False

    def _news(self) -> list[Event]:
        if not self.run:
            found = [path for path in self.ground.journals() if path.stem not in self.known]
            if not found:
                return []
            self.run = found[0].stem
            self._files = [Lines(found[0]), Lines(self.ground.events_file(self.run))]
        return [event for lines in self._files for event in lines.new()]
