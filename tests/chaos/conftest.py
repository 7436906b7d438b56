"""A round's ground without a round, so that what the rounds look at can be tried."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.chaos.ground import Ground
from tests.chaos.points import Event
from tests.lab.lab import Lab

RUN = "20261130-000000-aaaa"
Plant = Callable[..., None]


@pytest.fixture
def ground(lab: Lab, tmp_path: Path) -> Iterator[Ground]:
    """A site in the unprivileged container; nothing runs there yet."""
    made = Ground(tmp_path, lab, "ct201")
    made.place.exec("/bin/mkdir", "-p", made.runs)
    yield made
    made.end()


@pytest.fixture
def plant(ground: Ground) -> Plant:
    """Writes the events of RUN, as the target (or this machine's journal) would have them."""

    def write(*events: Event, here: bool = False) -> None:
        lines = "".join(json.dumps({"run": RUN, "t": 1.0, "phase": "cutover", **event}) + "\n" for event in events)
        if here:
            journal = ground.home / "home" / "state" / "deployctl" / "runs" / f"{RUN}.jsonl"
            journal.parent.mkdir(parents=True, exist_ok=True)
            journal.write_text(lines)
        else:
            ground.place.write(f"{ground.runs}/{RUN}.jsonl", lines.encode())

    return write
