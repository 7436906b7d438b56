"""The exit status of several targets: the one that a person must hear of first."""

from __future__ import annotations

import itertools

import pytest

from deployctl.fleet import worst

FAILURES = (1, 2, 3, 4, 5, 6, 7, 130)


@pytest.mark.parametrize("status", FAILURES)
def test_one_failure_among_good_ones_is_the_status(status: int) -> None:
    for order in itertools.permutations((0, status, 0)):
        assert worst(order) == status


def test_a_workload_that_is_down_is_worst_of_all() -> None:
    assert {worst(pair) for status in (0, *FAILURES) for pair in ((5, status), (status, 5))} == {5}


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [((7, 4, 1), 7), ((1, 4), 4), ((3, 1), 1), ((6, 3), 3), ((130, 6), 6), ((130, 0), 130), ((0, 0), 0), ((), 0)],
)
def test_the_worst_is_what_a_person_must_hear_of_first(statuses: tuple[int, ...], expected: int) -> None:
    assert worst(statuses) == expected
    assert worst(reversed(statuses)) == expected
