"""The event boundaries of a run, and the wait for one of them."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.chaos.ground import Ground

Event = dict[str, Any]
DO = (
    "begin", "connected", "locked", "found", "staged", "verified", "cutover", "op:stop", "rung", "signalled", "lingering", "stopped",
    "op:golive", "live", "op:launch", "launched", "op:check", "checked", "failed", "end",
)  # fmt: skip
STOPPING = ("undo:rung", "undo:signalled", "undo:stopped")  # only where what was launched has to be stopped
UNDO = (
    "undo:stop", *STOPPING, "undo:goback", "undo:back", "undo:launch", "undo:launched", "undo:check", "undo:checked",
)  # fmt: skip
POINTS = (*DO, *UNDO)
POLL = 0.002  # seconds


class Lines:
    """The events that were added to a file since the last look; a torn line waits for its rest."""

    def __init__(self, path: Path) -> None:
        self.path, self._offset, self._undoing = path, 0, False

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

    def points(self) -> Iterator[str]:
        """The names of the points at which they stand: those of the undo begin with "undo:", but for the run's end."""
        for event in self.new():
            if event["what"] == "op":
                self._undoing = event["list"] == "undo"
                yield f"{'undo' if self._undoing else 'op'}:{event['op']}"
            else:
                yield f"undo:{event['what']}" if self._undoing and event["what"] != "end" else str(event["what"])


class Watch:
    """Follows one run in both of its files: what the controller says is in its journal first, what the job says in the target's."""

    def __init__(self, ground: Ground, controller: subprocess.Popen[bytes], known: set[str]) -> None:
        self.ground, self.controller, self.known = ground, controller, known
        self.run = ""
        self._journal = self._target = Lines(Path(os.devnull))
        self._lingers = False  # the job goes on to its end without the controller

    def reach(self, point: str, within: float, ready: Callable[[], object]) -> bool:
        """Waits until the point was passed; False when the run ended before it, or at the deadline. `ready`: called at each event.

        What becomes of a run whose controller has left a lingering job is the job's: it is watched to the job's own end.
        """
        until = time.monotonic() + within
        while time.monotonic() < until:
            over = self.controller.poll() is not None
            passed = self._passed()
            if point in passed:
                return True
            if over and not self._lingers:
                return False
            if passed:
                ready()
            time.sleep(POLL)
        return False

    def _passed(self) -> list[str]:
        if not self.run:
            found = [path for path in self.ground.journals() if path.stem not in self.known]
            if not found:
                return []
            self.run = found[0].stem
            self._journal, self._target = Lines(found[0]), Lines(self.ground.events_file(self.run))
        told, done = [*self._journal.points()], [*self._target.points()]
        self._lingers = (self._lingers or "lingering" in done) and "end" not in done
        return told + done
