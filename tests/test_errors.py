"""Errors: where, what, what to do, and the exit status that each kind means."""

from __future__ import annotations

import pytest

from deployctl import errors
from deployctl.errors import DeployError, suggestion


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("DeployError", 1), ("RefusedError", 1), ("AgentError", 1), ("WordsError", 2), ("TransportError", 3), ("BusyError", 6),
        ("DetachedError", 7), ("InterruptedRunError", 130),
    ],
)  # fmt: skip
def test_each_kind_has_its_exit_status(kind: str, status: int) -> None:
    found = getattr(errors, kind)
    assert (found("x").exit_status, issubclass(found, DeployError)) == (status, True)


def test_an_error_is_its_place_and_what_happened() -> None:
    error = DeployError("it broke", where="ct200: pct", todo="mend it")
    assert (str(error), error.what, error.where, error.todo) == ("ct200: pct: it broke", "it broke", "ct200: pct", "mend it")


def test_an_error_without_a_place_is_what_happened() -> None:
    assert str(DeployError("it broke")) == "it broke"


@pytest.mark.parametrize(
    ("word", "known", "said"),
    [
        ("stpo", ["launch", "stop"], "did you mean 'stop'?"),
        ("TREM", ["TERM", "INT"], "did you mean 'TERM'?"),
        ("trem", ["TERM", "INT"], "did you mean 'TERM'?"),
        ("xyz", ["b", "a", "b"], "known: a, b"),
        ("", ["a"], "known: a"),
        ("x", [], "write one"),
    ],
)
def test_the_nearest_word_is_suggested_else_all(word: str, known: list[str], said: str) -> None:
    assert suggestion(word, known, "write one") == said


def test_a_suggestion_is_never_empty() -> None:
    assert suggestion("x", [])
