"""Durations, sizes and signals: text in, number out, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployctl.errors import WordsError
from deployctl.values import SIGNALS, UNITS, duration, show_duration, show_size, signal_name


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("180s", 180),
        ("2m", 120),
        ("1h30m", 5400),
        ("1.5s", 1.5),
        ("500ms", 0.5),
        (" 1 m ", 60),
        ("1d", 86400),
        ("0s", 0),
        ("1m1ms", 60.001),
    ],
)
def test_a_duration_is_its_seconds(text: str, seconds: float) -> None:
    assert duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "s", "5", "5x", "-5s", "5s-", "1e3s", "+5s", "5 s x", ".5s", "5.s", "inf s", "٣s", True, None, 30, 1.5]
)
def test_what_is_no_duration_is_refused(text: object) -> None:
    with pytest.raises(WordsError) as caught:
        duration(text)
    assert caught.value.what == f"'{text}' is no duration"


@pytest.mark.parametrize("text", ["30", 30, "1.5"])
def test_a_number_without_a_unit_is_told_how_to_write_seconds(text: object) -> None:
    with pytest.raises(WordsError) as caught:
        duration(text)
    assert caught.value.todo == f"write '{text}s' for seconds"


@given(st.integers(0, 10_000), st.sampled_from(sorted(UNITS)))
def test_every_number_with_a_unit_is_a_duration(number: int, unit: str) -> None:
    assert duration(f"{number}{unit}") == number * UNITS[unit]


@given(st.text())
def test_any_text_is_a_duration_or_wrong_words(text: str) -> None:
    try:
        assert duration(text) >= 0
    except WordsError:
        pass


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"), (0.0001, "1 ms"), (0.085, "85 ms"), (0.9994, "999 ms"), (0.9996, "1.0 s"), (1, "1 s"), (1.44, "1.4 s"), (42, "42 s"),
        (119.4, "119 s"), (185, "3 min 05 s"), (3599.6, "60 min"), (180, "3 min"), (7800, "2 h 10 min"), (5 * 86400 + 3 * 3600, "5 d 3 h"),
    ],
)  # fmt: skip
def test_a_duration_is_shown_as_precise_as_a_person_needs(seconds: float, text: str) -> None:
    assert show_duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"), (912, "912 B"), (999, "999 B"), (1000, "1.0 KB"), (20_480, "20.5 KB"), (1_300_000_000, "1.3 GB"), (5e15, "5000.0 TB"),
        (999_999, "1.0 MB"),
    ],
)  # fmt: skip
def test_a_size_is_shown_in_decimal_units(count: float, text: str) -> None:
    assert show_size(count) == text


@pytest.mark.parametrize("text", ["INT", "int", "SIGINT", "sigint"])
def test_a_signal_is_known_by_each_of_its_spellings(text: str) -> None:
    assert signal_name(text) == "INT"


@pytest.mark.parametrize(
    ("text", "todo"), [("TREM", "did you mean 'TERM'?"), ("SIGKIL", "did you mean 'KILL'?"), ("9", "known: "), ("", "known: ")]
)
def test_what_is_no_signal_is_refused_with_the_nearest(text: str, todo: str) -> None:
    with pytest.raises(WordsError) as caught:
        signal_name(text)
    assert caught.value.what == f"'{text}' is no signal"
    assert caught.value.todo.startswith(todo)


def test_every_signal_of_a_ladder_is_one_of_the_system() -> None:
    import signal

    assert [name for name in SIGNALS if not hasattr(signal, f"SIG{name}")] == []
