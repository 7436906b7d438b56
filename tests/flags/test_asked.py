"""What a run makes of the values that the last launch had."""

from __future__ import annotations

import pytest

from deployctl.errors import RefusedError, WordsError
from deployctl.flags import Flag, Shape
from deployctl.flags.asked import Asked

FLAGS = (
    Flag("lr", "float", max=1.0), Flag("interval", "duration", default=30.0), Flag("amp", "bool"), Flag("level", "int", env="LEVEL"),
    Flag("tags", nargs="+"),
)  # fmt: skip
COMMAND = ("t", "--lr", "0.5")
LAST = {"lr": ["1e-4"], "interval": ["60s"], "amp": ["true"], "level": ["3"], "tags": ["a", "b"], "--": ["--fast", "--seed=1"]}


def asked(**more) -> Asked:
    return Asked(COMMAND, {"A": "1"}, Shape(FLAGS), **more)


def test_what_was_chosen_is_remembered_and_defaults_are_not():
    settled = asked(values={"lr": FLAGS[0].read(["1e-4"]), "tags": ("a", "b")}, extra=("--fast",)).settle()
    assert settled.remembered == {"lr": ("1e-4",), "tags": ("a", "b"), "--": ("--fast",)}
    assert settled.command == ("t", "--interval=30", "--tags", "a", "b", "--fast", "--lr=1e-4")
    assert settled.values == {"lr": 1e-4, "interval": 30.0, "tags": ("a", "b")}


def test_the_values_of_the_last_launch_are_kept():
    settled = asked(keep=True).settle(LAST)
    assert settled.command == ("t", "--interval=60", "--amp", "--tags", "a", "b", "--fast", "--seed=1", "--lr=1e-4")
    assert settled.environment == {"A": "1", "LEVEL": "3"}
    assert (settled.kept, settled.dropped) == ({name: tuple(texts) for name, texts in LAST.items()}, {})
    assert settled.remembered == settled.kept


def test_what_is_said_now_wins_over_what_was_kept():
    settled = asked(keep=True, values={"lr": 0.2}, extra=("--seed=2",), unset=("amp", "level", "tags")).settle(LAST)
    assert settled.command == ("t", "--interval=60", "--fast", "--seed=2", "--lr=0.2")
    assert settled.kept == {"interval": ("60s",), "--": ("--fast",)}
    assert settled.environment == {"A": "1"}
    assert settled.dropped == {}
    assert settled.remembered == {"lr": ("0.2",), "interval": ("60s",), "--": ("--fast", "--seed=2")}


def test_what_the_last_launch_had_and_this_one_has_not_is_named():
    settled = asked(values={"amp": True}).settle(LAST)
    assert settled.command == ("t", "--interval=30", "--amp", "--lr", "0.5")
    dropped = {"lr": ("1e-4",), "interval": ("60s",), "level": ("3",), "tags": ("a", "b"), "--": ("--fast", "--seed=1")}
    assert settled.dropped == dropped


def test_a_value_that_the_command_has_anyway_is_not_dropped():
    same = Asked(("t", "--lr", "1e-4", "--fast"), {"LEVEL": "3"}, Shape(FLAGS))
    assert same.settle({"lr": ["1e-4"], "level": ["3"], "--": ["--fast"]}).dropped == {}


def test_a_flag_that_is_unset_is_not_dropped_unsaid():
    assert asked(unset=("lr",)).settle({"lr": ["1e-4"]}).dropped == {}
    assert asked(unset=("lr", "interval")).settle().command == ("t",)


def test_a_flag_that_the_playbook_has_no_more_is_dropped():
    for keep in (True, False):
        settled = asked(keep=keep).settle({"gone": ["1"]})
        assert (settled.kept, settled.dropped) == ({}, {"gone": ("1",)})


def test_an_undeclared_flag_of_the_last_launch_yields_to_the_declared_one():
    settled = asked(keep=True, values={"lr": 0.2}).settle({"--": ["--lr=0.9", "--x"]})
    assert settled.command == ("t", "--interval=30", "--x", "--lr=0.2")


def test_a_kept_value_that_is_allowed_no_more_is_refused():
    with pytest.raises(RefusedError, match="--lr: '2' is above 1") as caught:
        asked(keep=True).settle({"lr": ["2"]})
    assert caught.value.where == "--keep-flags"
    assert asked().settle({"lr": ["2"]}).dropped == {"lr": ("2",)}


def test_wrong_words_of_this_run_are_no_fault_of_the_last_launch():
    with pytest.raises(WordsError, match="is no flag"):
        asked(extra=("x",)).settle({"lr": ["1"]})


def test_keeping_twice_changes_nothing():
    once = asked(keep=True).settle(LAST)
    assert asked(keep=True).settle(once.remembered) == once


def test_a_file_that_is_found_later_stands_as_a_mark_and_is_not_remembered():
    resume = Flag("resume", "path", newest="c/*.pt", complete=("check",), default="none")
    whole = Asked(("t", "--resume", "old"), {}, Shape((resume,)))
    settled = whole.settle()
    assert settled.command == ("t", "--resume=<newest c/*.pt>")
    assert settled.newest == (
        {"mark": "<newest c/*.pt>", "flag": "resume", "pattern": "c/*.pt", "complete": ["check"], "default": "none"},
    )
    assert settled.remembered == {}


def test_a_file_that_is_given_is_not_looked_for():
    resume = Flag("resume", "path", newest="c/*.pt")
    for asked_for, command in (({"values": {"resume": "x"}}, ("t", "--resume=x")), ({"unset": ("resume",)}, ("t",))):
        settled = Asked(("t",), {}, Shape((resume,)), **asked_for).settle()
        assert (settled.command, settled.newest) == (command, ())
