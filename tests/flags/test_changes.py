"""Two command lines side by side."""

from __future__ import annotations

import pytest

from deployctl.flags import Flag, Shape
from deployctl.flags.changes import compare, same

SHAPE = Shape((Flag("amp", "bool"), Flag("tags", nargs="+"), Flag("batch", "int", spelling="-b")))
SIGNS = {"kept": "=", "changed": "~", "added": "+", "removed": "-"}


def told(before: str, after: str, shape: Shape = SHAPE) -> list[str]:
    found = compare(before.split(), after.split(), shape)
    was = [f" < {' '.join(change.before)}" if change.how == "changed" else "" for change in found]
    return [f"{SIGNS[change.how]} {' '.join(change.after or change.before)}{old}" for change, old in zip(found, was, strict=True)]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("python3 t.py --lr 1", "python3 t.py --lr=1", ["= python3", "= t.py", "= --lr=1"]),
        ("python3 t.py --lr 1", "python3 t.py --lr=2", ["= python3", "= t.py", "~ --lr=2 < --lr 1"]),
        ("t --lr 1 --x", "t --amp --lr=1", ["= t", "+ --amp", "= --lr=1", "- --x"]),
        ("t --a 1 --b 2", "t --b 3 --a 1", ["= t", "~ --b 3 < --b 2", "= --a 1"]),
        ("t --amp cfg", "t cfg", ["= t", "= cfg", "- --amp"]),
        ("t --tags a b --x", "t --tags a c --x", ["= t", "~ --tags a c < --tags a b", "= --x"]),
        ("t -b 4", "t -b4", ["= t", "= -b4"]),
        ("t --max_len 4", "t --max-len=4", ["= t", "= --max-len=4"]),
        ("t x -- --lr 1", "t x -- --lr 2", ["= t", "= x", "= --", "= --lr", "+ 2", "- 1"]),
        ("/usr/bin/python3 t.py", "python3 t.py", ["~ python3 < /usr/bin/python3", "= t.py"]),
        ("python3 t.py --x", "env A=1 nice python3 t.py --x", ["= env", "= A=1", "= nice", "= python3", "= t.py", "= --x"]),
        ("/v/bin/python /v/bin/torchrun --n 8 t.py", "torchrun --n 8 t.py", ["= torchrun", "= --n", "= 8", "= t.py"]),
        ("python3 ./train --x", "./train --x", ["= ./train", "= --x"]),
        ("t", "u", ["~ u < t"]),
    ],
)
def test_each_flag_is_kept_changed_added_or_removed(before, after, expected):
    assert told(before, after) == expected


def test_keys_are_compared_by_their_key():
    assert told("t lr=1 x=2", "t x=2 lr=3", Shape(style="keyval")) == ["= t", "= x=2", "~ lr=3 < lr=1"]


def test_every_word_of_both_lines_is_told_of():
    before, after = ["python3", "t.py", "a", "--x", "1", "--x", "2", "b"], ["python3", "u.py", "--x", "2", "b", "--y", "c"]
    found = compare(before, after, SHAPE)
    assert sorted(word for change in found for word in change.before) == sorted(before)
    assert sorted(word for change in found for word in change.after) == sorted(after)


def test_another_spelling_says_the_same():
    assert same(["t", "--lr", "1", "--amp"], ["t", "--amp", "--lr=1"], SHAPE)
    assert not same(["t", "--lr", "1"], ["t", "--lr", "2"], SHAPE)
