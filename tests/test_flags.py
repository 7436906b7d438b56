from __future__ import annotations

import argparse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployctl.errors import WordsError
from deployctl.flags import Flag, declare, declared, merge, program_position

INTERVAL = Flag("profile-interval", type="int", min=0)


@pytest.mark.parametrize(
    ("flag", "text", "value"),
    [
        (INTERVAL, "60", 60),
        (INTERVAL, "0", 0),
        (INTERVAL, "+5", 5),
        (Flag("f", "int"), "-5", -5),
        (Flag("f", "float"), "1e-4", 1e-4),
        (Flag("f", "float"), ".5", 0.5),
        (Flag("f", "str"), "", ""),
        (Flag("f", "str"), "0644", "0644"),
        (Flag("f", "bool"), "true", True),
        (Flag("f", "bool"), "false", False),
        (Flag("f", "choice", choices=("a", "b")), "b", "b"),
        (Flag("f", "path"), "~/x y", "~/x y"),
        (Flag("f", "duration", min=60), "2m", 120.0),
    ],
)
def test_a_text_becomes_a_value(flag, text, value):
    parsed = flag.parse(text)
    assert (parsed, type(parsed)) == (value, type(value))


@pytest.mark.parametrize(
    ("flag", "text", "what", "todo"),
    [
        (INTERVAL, "-5", "'-5' is below 0", "give at least 0"),
        (Flag("f", "int", min=1, max=8), "9", "'9' is above 8", "give 1 to 8"),
        (Flag("f", "float", max=0.5), "0.6", "'0.6' is above 0.5", "give at most 0.5"),
        (Flag("f", "duration", max=60), "2m", "'2m' is above 60", "give at most 60 seconds"),
        (Flag("f", "int"), "1_000", "'1_000' is no whole number", "digits"),
        (Flag("f", "int"), "1.0", "'1.0' is no whole number", "digits"),
        (Flag("f", "int"), "٣", "'٣' is no whole number", "digits"),
        (Flag("f", "int"), "9" * 5000, "is no whole number", "digits"),
        (Flag("f", "float"), "nan", "'nan' is no number", "1e-4"),
        (Flag("f", "float"), "1e999", "'1e999' is no number", "1e-4"),
        (Flag("f", "float"), "e", "'e' is no number", "1e-4"),
        (Flag("f", "bool"), "yes", "'yes' is neither 'true' nor 'false'", "one of the two"),
        (Flag("f", "choice", choices=("small", "large")), "smal", "'smal' is no choice", "did you mean 'small'?"),
        (Flag("f", "path"), "", "'' is no path", "a path"),
        (Flag("f", "duration"), "60", "'60' is no duration", "write '60s'"),
        (Flag("f", "str"), "a\0", "NUL", "remove it"),
    ],
)
def test_a_wrong_text_is_refused(flag, text, what, todo):
    with pytest.raises(WordsError) as caught:
        flag.parse(text)
    assert (caught.value.where, caught.value.exit_status) == (f"--{flag.name}", 2)
    assert what in caught.value.what
    assert todo in caught.value.todo


@pytest.mark.parametrize(
    ("flag", "value", "words"),
    [
        (INTERVAL, 60, ["--profile-interval=60"]),
        (Flag("lr", "float"), -1e-4, ["--lr=-0.0001"]),
        (Flag("f", "bool"), True, ["--f"]),
        (Flag("f", "bool"), False, []),
        (Flag("f"), "", ["--f="]),
        (Flag("f"), "--x y", ["--f=--x y"]),
        (Flag("f", "duration"), 90.0, ["--f=90"]),
        (Flag("batch-size", "int", option="--batch_size"), 8, ["--batch_size=8"]),
        (Flag("batch", "int", option="-b"), -8, ["-b", "-8"]),
    ],
)
def test_a_value_becomes_words(flag, value, words):
    assert flag.render(value) == words


def test_a_short_option_carries_no_text_with_a_dash():
    with pytest.raises(WordsError, match="begins with a dash"):
        Flag("b", option="-b").render("--")


@pytest.mark.parametrize(
    ("command", "position"),
    [
        ("train", 1),
        ("/opt/train --x", 1),
        ("torchrun train.py", 1),
        ("python3 train.py --x", 2),
        ("/venv/bin/python3.12 train.py", 2),
        ("python3.13t train.py", 2),
        ("python3 -u train.py", 3),
        ("python3 -X dev -W ignore train.py", 6),
        ("python3 -Xdev -Wignore train.py", 4),
        ("python3 -uX dev train.py", 4),
        ("python3 -m pkg.mod --x", 3),
        ("python3 -mpkg.mod --x", 2),
        ("python3 -Ium pkg.mod --x", 3),
        ("python3 -c code arg", 3),
        ("python3 -ccode arg", 2),
        ("python3 -- train.py", 3),
        ("python3 - arg", 2),
        ("python3 --check-hash-based-pycs always train.py", 4),
        ("python3", 1),
        ("python3 -m", 2),
        ("python3 -X", 2),
        ("pythonic train.py", 1),
        ("", 0),
    ],
)
def test_the_flags_of_the_program_begin_behind_its_script(command, position):
    assert program_position(tuple(command.split())) == position


@pytest.mark.parametrize(
    ("command", "after"),
    [
        ("python3 t.py --x 1", "python3 t.py --profile-interval=60 --x 1"),
        ("python3 t.py --a --profile-interval 5 --b", "python3 t.py --a --profile-interval=60 --b"),
        ("python3 t.py --a --profile-interval=5 --b", "python3 t.py --a --profile-interval=60 --b"),
        ("t --profile-interval=5 --a --profile-interval 7 x", "t --profile-interval=60 --a x"),
        ("t --profile-interval -5 x", "t --profile-interval=60 x"),
        ("t --profile-interval --x", "t --profile-interval=60 --x"),
        ("t --profile-interval", "t --profile-interval=60"),
        ("t --profile-interval-max 5", "t --profile-interval=60 --profile-interval-max 5"),
        ("t -- --profile-interval 5", "t --profile-interval=60 -- --profile-interval 5"),
        ("t --profile-interval 5 -- --profile-interval 5", "t --profile-interval=60 -- --profile-interval 5"),
        ("python3 -u -m pkg.mod cfg.yaml", "python3 -u -m pkg.mod --profile-interval=60 cfg.yaml"),
        ("t", "t --profile-interval=60"),
    ],
)
def test_a_flag_stands_once_in_its_old_place(command, after):
    assert merge(tuple(command.split()), [(INTERVAL, 60)]) == tuple(after.split())


def test_a_switch_takes_no_neighbour_with_it():
    switch = Flag("compile", "bool")
    assert merge(("t", "--compile", "cfg.yaml"), [(switch, False)]) == ("t", "cfg.yaml")
    assert merge(("t", "--compile", "cfg.yaml"), [(switch, True)]) == ("t", "--compile", "cfg.yaml")


def test_new_flags_keep_their_order():
    assert merge(("t", "x"), [(Flag("a"), "1"), (Flag("b"), "2")], ("--c=3", "--d")) == ("t", "--a=1", "--b=2", "--c=3", "--d", "x")


def test_an_undeclared_flag_replaces_its_older_self():
    assert merge(("t", "--lr", "1", "--amp", "x"), (), ("--lr=2", "--amp")) == ("t", "--lr=2", "--amp", "x")


def test_an_undeclared_flag_wins_over_a_declared_one():
    assert merge(("t",), [(INTERVAL, 60)], ("--profile-interval=5",)) == ("t", "--profile-interval=5")


def test_an_undeclared_flag_that_is_given_twice_stands_twice():
    assert merge(("t", "--tag=z"), (), ("--tag=a", "--tag=b")) == ("t", "--tag=a", "--tag=b")


@pytest.mark.parametrize("word", ["lr=2", "x", "--", "-", "", "--=x", "- x"])
def test_an_extra_word_that_is_no_flag_is_refused(word):
    with pytest.raises(WordsError, match="is no flag") as caught:
        merge(("t",), (), (word,))
    assert caught.value.exit_status == 2


FLAGS = (INTERVAL, Flag("lr", "float"), Flag("amp", "bool"), Flag("name"), Flag("batch", "int", option="-b"))
OLD = ("--profile-interval", "--profile-interval=3", "--lr", "--lr=1", "--amp", "--name", "--name=--amp", "-b", "-b=3")
WORDS = st.sampled_from([*OLD, "-1", "1e-4", "--", "x", "-"])
COMMANDS = st.tuples(st.sampled_from([("t",), ("python3", "-u", "t.py"), ("python3", "-m", "pkg")]), st.lists(WORDS, max_size=8))
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(codec="utf-8"))
VALUES = st.tuples(st.integers(0, 99), FLOATS, st.booleans(), TEXTS, st.integers()).map(lambda given: list(zip(FLAGS, given, strict=True)))
EXTRA = st.lists(st.sampled_from(["--seed=1", "--fast", "--tag=a", "--tag=b", "--lr=7"]), max_size=4).map(tuple)


@given(COMMANDS, VALUES, EXTRA)
def test_three_merges_leave_what_one_leaves(command, values, extra):
    once = merge((*command[0], *command[1]), values, extra)
    assert merge(merge(once, values, extra), values, extra) == once


@given(COMMANDS, VALUES)
def test_what_stands_behind_two_dashes_stays(command, values):
    words = (*command[0], *command[1])
    behind = words[words.index("--") :] if "--" in words else ()
    after = merge(words, values)
    assert after[len(after) - len(behind) :] == behind
    assert after[: len(command[0])] == command[0]


@given(VALUES, st.lists(st.sampled_from(["--profile-interval=3", "--lr=1", "--amp", "--name=x", "-b=3"]), max_size=6))
def test_the_program_reads_the_values_that_were_given(values, old):
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--profile-interval", type=int)
    parser.add_argument("--lr", type=float)
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--name")
    parser.add_argument("-b", type=int)
    read = parser.parse_args(merge(("t", *old), values)[1:])
    assert [read.profile_interval, read.lr, read.amp, read.name, read.b] == [value for _, value in values]


def test_a_declaration_becomes_a_flag():
    raw = {"type": "duration", "min": "5s", "max": "1h", "default": "1m", "help": "pause", "option": "--save_every"}
    assert declare("save-every", raw) == Flag("save-every", "duration", "pause", 5.0, 3600.0, (), 60.0, "--save_every")


def test_flags_keep_the_order_of_the_playbook():
    flags = declared({"b": {"type": "choice", "choices": [1, "two"], "default": 1}, "a": {}, "c": {"type": "bool", "default": False}})
    assert [(flag.name, flag.type, flag.default) for flag in flags] == [("b", "choice", "1"), ("a", "str", None), ("c", "bool", False)]


@pytest.mark.parametrize(
    ("name", "raw", "what", "todo"),
    [
        ("--a", {}, "'--a' is no flag", "without the dashes"),
        ("a b", {}, "'a b' is no flag", "letters"),
        ("a", "int", "wants a map", "{type: int"),
        ("a", None, "wants a map", "{type: int"),
        ("a", {"tpye": "int"}, "'tpye' is no key of flag", "did you mean 'type'?"),
        ("a", {"type": "itn"}, "'itn' is no type", "did you mean 'int'?"),
        ("a", {"type": ["int"]}, "wants a single value", "a text or a number"),
        ("a", {"type": "int", "min": 5, "max": 4}, "'min' is above 'max'", "exchange"),
        ("a", {"type": "int", "min": 1, "default": 0}, "default: '0' is below 1", "at least 1"),
        ("a", {"type": "int", "max": "x"}, "max: 'x' is no whole number", "digits"),
        ("a", {"type": "str", "min": 1}, "a str has no 'min'", "int, float, duration"),
        ("a", {"type": "bool", "default": "yes"}, "default: 'yes' is neither", "one of the two"),
        ("a", {"type": "choice"}, "'choices' and 'type: choice' go together", "both"),
        ("a", {"choices": ["x"]}, "'choices' and 'type: choice' go together", "both"),
        ("a", {"type": "choice", "choices": "x"}, "choices: wants a list", "[small, large]"),
        ("a", {"type": "choice", "choices": ["x"], "default": "y"}, "default: 'y' is no choice", "known: x"),
        ("a", {"option": "a"}, "'a' is no option", "--batch_size"),
        ("a", {"option": "--a=b"}, "'--a=b' is no option", "--batch_size"),
    ],
)
def test_a_wrong_declaration_is_refused(name, raw, what, todo):
    with pytest.raises(WordsError) as caught:
        declare(name, raw)
    assert (caught.value.where, caught.value.exit_status) == (name, 2)
    assert what in caught.value.what
    assert todo in caught.value.todo
