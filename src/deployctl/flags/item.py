"""One flag on its way into a command line: which old words are its own, and which words take their place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from deployctl.flags.anatomy import canonical
from deployctl.flags.flag import NUMBERS, Flag, Given, is_value, values_of

_TRUTH = ("true", "false")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|-(inf|nan)")


@dataclass(frozen=True)
class Old:
    """A flag as it stood in the command line: its words are [start, end), the name is as it was written."""

    start: int
    end: int
    name: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Item:
    """A flag with what is given for it (None: it is taken away), or undeclared words `raw` that are used as they are."""

    flag: Flag
    given: Given | None = None
    raw: tuple[str, ...] = ()

    @property
    def spelling(self) -> str:
        """How the program calls it."""
        return self.flag.spelled("option")

    @property
    def names(self) -> frozenset[str]:
        """Every name, in its canonical form, whose old words go when the flag is set."""
        more = {canonical(self.flag.off)} if self.flag.off else set()
        return frozenset({canonical(self.spelling), *map(canonical, self.flag.also), *more, *self.negated})

    @property
    def negated(self) -> frozenset[str]:
        """`--no-f` of a switch `--f`."""
        name = canonical(self.spelling)
        return frozenset({f"--no-{name[2:]}"} if self.flag.type == "bool" and name.startswith("--") else ())

    @property
    def appends(self) -> bool:
        """Whether the old ones stay."""
        return self.flag.repeat == "append" and self.given is not None and not self.raw

    @property
    def open_ended(self) -> bool:
        """Whether its words would swallow a positional argument right behind them."""
        return self.flag.nargs in ("+", "*") and self.given is not None and not self.raw

    def old(self, words: Sequence[str], at: int, name: str = "") -> Old | None:
        """The flag's old words from `at` on; None where they are another's. `name`: what the word at `at` stands for, if not for itself."""
        word = words[at]
        if not name and (value := self._attached(word)) is not None:
            return Old(at, at + 1, word[:2], (value,))
        if (name or canonical(word)) not in self.names or is_value(word):
            return None
        written, equals, value = word.partition("=")
        if equals:
            return Old(at, at + 1, written, (value,))
        count = self._count(words, at + 1)
        return Old(at, at + 1 + count, written, tuple(words[at + 1 : at + 1 + count]))

    def _attached(self, word: str) -> str | None:
        """The value in `-b8`; None where the rest of the word may as well be other letters."""
        rest = word[2:]
        if len(self.spelling) != 2 or word[:2] != self.spelling or not rest or rest[0] == "=" or self.flag.type == "bool":
            return None
        return rest if rest[0] == "-" or re.fullmatch(r"\+?[0-9.][0-9.eE+-]*", rest) else None

    def _count(self, words: Sequence[str], at: int) -> int:
        """How many words from `at` on are its values."""
        most = 1
        if self.flag.type == "bool":
            return int(at < len(words) and words[at].lower() in _TRUTH)
        if self.flag.nargs:
            most = int(self.flag.nargs) if self.flag.nargs.isdigit() else len(words)
        count = 0
        while count < most and at + count < len(words) and self._may_be_value(words[at + count]):
            count += 1
        return count

    def _may_be_value(self, word: str) -> bool:
        """Parsers other than argparse take any negative number behind an option that wants one."""
        return is_value(word) or (self.flag.type in NUMBERS and bool(_NUMBER.fullmatch(word)))

    def new(self, old: Sequence[Old]) -> list[str]:
        """The words that take the place of the old ones. Raises WordsError for a value that the flag cannot carry."""
        if self.raw or self.given is None:
            return list(self.raw)
        first = next((one for one in old if canonical(one.name) in {canonical(self.spelling), *self.negated}), None)
        if self.flag.type == "bool" and first is not None and not (self.flag.off and not self.given):
            return self._switched(first)
        given = self.given
        if self.appends:
            had = {value for one in old for value in one.values}
            given = tuple(value for value in values_of(given) if self.flag.text(value) not in had)
        words = self.flag.render(given)
        if first is None or self.flag.spelling or self.flag.off in words:
            return words
        return [_renamed(word, self.spelling, first.name) for word in words]

    def _switched(self, old: Old) -> list[str]:
        """A switch that stood there already, in the form in which the program took it: `--f`, `--no-f`, `--f True`."""
        if canonical(old.name) in self.negated:
            name = old.name if not self.given else old.name.replace("no-", "", 1).replace("no_", "", 1) if not self.flag.spelling else ""
            return [name or self.spelling]
        name = self.flag.spelling or old.name
        if old.values and old.values[0].lower() in _TRUTH:
            text = "true" if self.given else "false"
            return [f"{name}={text.capitalize() if old.values[0][0].isupper() else text}"]
        return [name] if self.given else []


def _renamed(word: str, spelling: str, name: str) -> str:
    """The word with the spelling that the old command line had: `--max_len=1` for `--max-len=1`."""
    return name + word[len(spelling) :] if word.partition("=")[0] == spelling and canonical(name) == canonical(spelling) else word


def abbreviates(word: str, item: Item, known: Iterable[str]) -> str:
    """Whether an unknown option is the flag, cut short: "surely", "perhaps" or "" (no).

    argparse takes a beginning that fits one of its options only; which others the program has, nobody here knows, so the command line
    and the playbook (`known`) must do. Cut inside a later word (`--profile-inter`) it is hardly an option of its own; `--profile` or `--lr`
    may well be one.
    """
    if len(item.spelling) == 2 and word[:2] == item.spelling and len(word) > 2 and item.flag.type != "bool":
        return "perhaps"
    name = canonical(word)
    fulls = [full for full in map(canonical, (item.spelling, item.flag.off, *item.flag.also)) if full.startswith(name) and full != name]
    if not fulls or not name.startswith("--") or len(name) < 3:
        return ""
    if any(other.startswith(name) and not any(full.startswith(other) for full in fulls) for other in known):
        return ""
    inside = "-" in name[2:] and name[-1].isalpha() and any(full[len(name)].isalpha() for full in fulls)
    return "surely" if inside else "perhaps"
