"""What a run leaves behind is seen, whichever file it is, under the names that the code gives it."""

from __future__ import annotations

import pytest

from deployctl.agent import state
from tests.chaos import invariants
from tests.chaos.conftest import RUN
from tests.chaos.ground import Ground

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("name", ["record.json", "exit.json", "roots.json", f"runs/{RUN}.job"])
def test_a_half_written_record_is_seen(ground: Ground, name: str) -> None:
    ground.place.write(f"{ground.state}/workloads/train/{name}{state.NEW}", b"{")
    assert [broken.name for broken in invariants.nothing_is_staged(ground)] == ["half-written"]


def test_a_half_written_intent_is_seen(ground: Ground) -> None:
    ground.place.write(f"{ground.directory}/.deployctl/{RUN}/intent.json{state.NEW}", b"{")
    assert [broken.name for broken in invariants.nothing_is_staged(ground)] == ["half-written"]


@pytest.mark.parametrize("ending", [".job", ".cancel", ".start", ".zip", ".tell", ".jsonl.reserve"])
def test_a_file_that_only_a_run_under_way_needs_is_seen(ground: Ground, ending: str) -> None:
    ground.place.write(f"{ground.runs}/{RUN}{ending}", b"secret")
    assert [broken.name for broken in invariants.nothing_is_staged(ground)] == ["work files"]


def test_what_a_run_keeps_for_good_is_no_trouble(ground: Ground) -> None:
    ground.place.write(f"{ground.runs}/{RUN}.jsonl", b"")
    ground.place.write(f"{ground.directory}/.deployctl/{RUN}/old/train.py", b"")
    assert [*invariants.nothing_is_staged(ground)] == []
