"""What a real argparse makes of a merged command line, whatever stood there before: the value that was asked for, once."""

from __future__ import annotations

import argparse

from hypothesis import given
from hypothesis import strategies as st

from deployctl.flags import Flag, Shape, merge
from deployctl.flags.anatomy import canonical

FLAGS = (
    Flag("profile-interval", "int"),
    Flag("lr", "float"),
    Flag("amp", "bool"),
    Flag("compile", "bool", off="--no-compile"),
    Flag("name"),
    Flag("batch", "int", spelling="-b"),
    Flag("tags", nargs="+"),
    Flag("pair", "int", nargs="2"),
    Flag("set", repeat="replace"),
)
SHAPE = Shape(FLAGS)
DEFAULTS = {
    "profile_interval": 7, "lr": 0.5, "amp": False, "compile": None, "name": "n", "b": 3, "tags": ["t"], "pair": [0, 0], "set": None,
}  # fmt: skip
GROUPS = {
    "profile_interval": ["--profile-interval 3", "--profile-interval=3", "--profile-i 3", "--prof=3"],
    "lr": ["--lr 1", "--lr=-1e-4", "--lr -.5"],
    "amp": ["--amp"],
    "compile": ["--compile", "--no-compile", "--no-comp"],
    "name": ["--name x", "--name=--amp", "--name=", "--nam y"],
    "b": ["-b 3", "-b=3", "-b3", "-b -3", "-b-3"],
    "tags": ["--tags a b", "--tags a", "--tags=a"],
    "pair": ["--pair 1 -2"],
    "set": ["--set a", "--set=b"],
    "other": ["--other", "--seed 5", "--seed=5"],
}  # fmt: skip
OLD = st.lists(st.sampled_from([(name, text.split()) for name, texts in GROUPS.items() for text in texts]), max_size=8)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8).filter(lambda text: text != "--")
PLAIN = st.text("ab-=", min_size=1, max_size=4).filter(lambda text: not text.startswith("-"))
VALUES = st.fixed_dictionaries(
    {},
    optional={
        "profile-interval": st.integers(-99, 99), "lr": FLOATS, "amp": st.booleans(), "compile": st.booleans(), "name": TEXTS,
        "batch": st.integers(), "tags": st.lists(PLAIN, min_size=1, max_size=3).map(tuple), "pair": st.tuples(st.integers(), st.integers()),
        "set": st.lists(TEXTS, min_size=1, max_size=3).map(tuple),
    },
)  # fmt: skip
LINES = ("t", "python3 -u t.py", "python3 -m pkg", "torchrun --nproc-per-node 8 t.py", "env A=1 nice ./t")
PROGRAMS = st.sampled_from([tuple(line.split()) for line in LINES])
NAMES = {"batch": "b", "profile-interval": "profile_interval"}


def parser() -> argparse.ArgumentParser:
    program = argparse.ArgumentParser(exit_on_error=False)
    program.add_argument("--profile-interval", type=int)
    program.add_argument("--lr", type=float)
    program.add_argument("--amp", action="store_true")
    program.add_argument("--compile", action=argparse.BooleanOptionalAction)
    program.add_argument("--name")
    program.add_argument("-b", type=int)
    program.add_argument("--tags", nargs="+")
    program.add_argument("--pair", nargs=2, type=int)
    program.add_argument("--set", action="append")
    program.add_argument("--other", action="store_true")
    program.add_argument("--seed", type=int)
    program.set_defaults(**DEFAULTS)
    program.add_argument("positional", nargs="?")
    return program


def pairs_of(values):
    return [(flag, values[flag.name]) for flag in FLAGS if flag.name in values]


@given(PROGRAMS, OLD, VALUES, st.booleans())
def test_the_program_reads_what_was_given_and_else_what_it_read_before(program, old, values, positional):
    words = [word for _, group in old for word in group]
    front = ["--seed=1", "cfg.yaml"] if positional else []  # the option keeps what stands behind the positional apart
    before = parser().parse_args([*front[1:], "--seed=1", *words])
    line = merge((*program, *front[1:], "--seed=1", *words), pairs_of(values), (), SHAPE)
    read = parser().parse_args(line[len(program) :])
    assert line[: len(program)] == program
    expected = {NAMES.get(name, name): list(value) if isinstance(value, tuple) else value for name, value in values.items()}
    assert vars(read) == {**vars(before), **expected}


@given(PROGRAMS, OLD, VALUES, st.lists(st.sampled_from(["--seed=1", "--fast", "--tag=a", "--tag=b", "--lr=7"]), max_size=4).map(tuple))
def test_three_merges_leave_what_one_leaves_and_no_flag_twice(program, old, values, extra):
    words = [word for _, group in old for word in group]
    once = merge((*program, *words), pairs_of(values), extra, SHAPE)
    assert merge(merge(once, pairs_of(values), extra, SHAPE), pairs_of(values), extra, SHAPE) == once
    names = [canonical(word) for word in once[len(program) :]]
    for name in {flag.name for flag in FLAGS} & set(values) - {"set", "batch", "lr"}:
        assert names.count(f"--{name}") + names.count(f"--no-{name}") <= 1


WORDS = ("--lr", "--lr=1", "--prof", "-b", "-b=3", "-n", "--", "x", "-", "-1", "1e-4", "--tags", "--amp", "--set")
ANY = st.lists(st.sampled_from(WORDS), max_size=9)


@given(PROGRAMS, ANY, VALUES)
def test_any_words_whatever_are_merged_alike_three_times(program, words, values):
    once = merge((*program, *words), pairs_of(values), (), SHAPE)
    assert merge(merge(once, pairs_of(values), (), SHAPE), pairs_of(values), (), SHAPE) == once


@given(PROGRAMS, ANY, VALUES)
def test_what_stands_behind_two_dashes_stays(program, words, values):
    behind = words[words.index("--") :] if "--" in words[1:] else []
    if words[:1] != ["--"]:
        after = merge((*program, *words), pairs_of(values), (), SHAPE)
        assert list(after[len(after) - len(behind) :]) == behind
