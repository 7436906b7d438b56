"""What the rounds are drawn from, where a fault falls, and what a long run has to have hit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.chaos import report
from tests.chaos.choices import BEFORE, FAULTS, Choice, courses_to, draw
from tests.chaos.courses import COURSES
from tests.chaos.faults import NO_VICTIM
from tests.chaos.points import POINTS, STOPPING, UNDO, Lines
from tests.chaos.round import Result

MANY = draw(seed=1, rounds=500)


def test_five_hundred_rounds_meet_everything_that_there_is() -> None:
    for name, all_of_it in {"point": POINTS, "fault": FAULTS, "course": COURSES, "before": BEFORE}.items():
        assert {getattr(choice, name) for choice in MANY} == set(all_of_it)
    assert {len(choice.signals) for choice in MANY} == {1, 2}


def test_the_rounds_of_a_seed_are_the_same_again() -> None:
    assert draw(seed=1, rounds=30) == MANY[:30] != draw(seed=2, rounds=30)


@pytest.mark.parametrize("point", [point for point in UNDO if point not in STOPPING])
def test_an_undo_is_looked_for_only_in_a_run_that_fails(point: str) -> None:
    assert set(courses_to(point)) == {"dies", "unwell"}


def test_what_was_launched_is_stopped_only_where_it_does_not_die_by_itself() -> None:
    assert {course for point in STOPPING for course in courses_to(point)} == {"unwell"}


def test_the_hosts_staging_is_filled_only_where_a_push_uses_it() -> None:
    assert {choice.via for choice in MANY if choice.fault == "fill-host-staging"} == {"push"}
    assert {choice.via for choice in MANY} == {"push", "session"}


def test_the_points_of_an_undo_have_names_of_their_own(tmp_path: Path) -> None:
    def lines(which: str) -> list[dict[str, str]]:
        return [{"what": "op", "op": "launch", "list": which}, {"what": "launched"}]

    events = [*lines("do"), {"what": "failed"}, *lines("undo"), {"what": "end"}]
    (tmp_path / "events").write_text("".join(json.dumps(event) + "\n" for event in events))
    found = Lines(tmp_path / "events").points()
    assert [*found] == ["op:launch", "launched", "failed", "undo:launch", "undo:launched", "end"]


def _played(choice: Choice) -> Result:
    return Result(choice, struck="killed 1")


def test_a_point_and_a_fault_without_a_hit_are_named() -> None:
    assert report.never_hit([_played(choice) for choice in MANY]) == []
    spared = [_played(choice) for choice in MANY if choice.point != "undo:back" and choice.fault != "cancel"]
    lost = [Result(choice, struck=NO_VICTIM) for choice in MANY if choice.point == "undo:back"]
    assert report.never_hit([*spared, *lost]) == ["undo:back", "cancel"]
