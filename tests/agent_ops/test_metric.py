"""A number out of a log: which texts are one, and what several come to."""

from __future__ import annotations

import re

import pytest

from deployctl.agent import metric


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("x 12", 12.0), ("x 1,024.5/s", 1024.5), ("x 1_000", 1000.0), ("x -1e-4", -1e-4), ("x 5 x 6", 5.0), ("x -", None), ("x nan", None),
        ("y 12", None), ("x ", None),
    ],
)  # fmt: skip
def test_a_line_gives_its_number(line: str, expected: float | None) -> None:
    assert metric.number_in(re.compile(r"x ([-+\d.,_e]+)"), line) == expected


def test_a_group_that_took_no_part_gives_no_number() -> None:
    assert metric.number_in(re.compile(r"x|y (\d+)"), "x") is None


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [([], None), ([3.0], 3.0), ([9.0, 1.0, 2.0], 2.0), ([1.0, 2.0], 1.5), ([float("inf")] * 2, float("inf")), ([float("nan"), 1.0], None)],
)
def test_several_numbers_come_to_their_median(numbers: list[float], expected: float | None) -> None:
    assert metric.value(numbers) == expected


def of(value: float, of_before: bool = False) -> dict[str, object]:
    return {"value": value, "of_before": of_before}


@pytest.mark.parametrize(
    ("bounds", "before", "passes"),
    [
        ({"at_least": of(10)}, None, True),
        ({"at_least": of(10.1)}, None, False),
        ({"at_most": of(10)}, None, True),
        ({"at_most": of(9.9)}, None, False),
        ({"at_least": of(0.9, True)}, 11.0, True),
        ({"at_least": of(0.9, True)}, 12.0, False),
        ({"at_most": of(1.0, True)}, 9.0, False),
        ({"at_least": of(0.9, True)}, None, True),
        ({"at_least": of(5), "at_most": of(9)}, None, False),
    ],
)
def test_ten_against_its_bounds(bounds: dict[str, object], before: float | None, passes: bool) -> None:
    operation = {"name": "x", "log": r"x (\d+)", "over": 1, "at_least": None, "at_most": None, "before": before, **bounds}
    tried = metric.Metric(operation)
    tried.feed(["x 10"])
    tried.look(1.0)
    assert tried.met is passes
    assert ("not at" in tried.seen) is not passes


def test_what_is_missing_is_said() -> None:
    operation = {"name": "rate", "log": r"x (\d+)", "over": 3, "at_least": of(0.9, True), "at_most": None, "before": 1000.0}
    tried = metric.Metric(operation)
    tried.feed(["x 500", "y", "x 510"])
    tried.look(1.0)
    assert tried.seen == "rate: the log has 2 of 3 numbers of 'x (\\d+)'"
    tried.feed(["x 520"])
    tried.look(1.0)
    assert tried.seen == "rate is 510, not at least 900 (90 % of 1000 before)"
