"""Two command lines side by side, flag by flag: what is kept, changed, added, removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import PurePosixPath
from typing import Any

from deployctl.agent import match
from deployctl.flags.anatomy import anatomy, canonical
from deployctl.flags.flag import is_value
from deployctl.flags.item import Item
from deployctl.flags.keyval import key_of
from deployctl.flags.merge import PLAIN, Shape


@dataclass(frozen=True)
class Change:
    """One flag or word: `how` is "kept", "changed", "added" or "removed"; its words in the line of before and in that of after."""

    how: str
    before: tuple[str, ...]
    after: tuple[str, ...]

    def as_data(self) -> dict[str, Any]:
        """The change for JSON."""
        return {"how": self.how, "before": list(self.before), "after": list(self.after)}


@dataclass(frozen=True)
class _Unit:
    """Words that belong together: an option with its values, or one other word. Two units with one key are the same thing."""

    key: str
    words: tuple[str, ...]
    values: tuple[str, ...]


def compare(before: Sequence[str], after: Sequence[str], shape: Shape = PLAIN) -> list[Change]:
    """What becomes of the command line `before` (a running process's), in the order of `after`.

    How a flag is spelled (`--f v`, `--f=v`) and where it stands are no changes. What a running process cannot show is taken for kept:
    `env`, `nice` and their like before the program; an interpreter that its script chose itself is taken for none.
    """
    hidden = _prefix(after) if not _prefix(before) else 0
    old, new = _units(_bare(before, after[hidden:]), shape), _units(after[hidden:], shape)
    found = [Change("kept", (), (word,)) for word in after[:hidden]]
    gone: list[_Unit] = []
    come: list[int] = []
    for _, first, last, begin, end in SequenceMatcher(None, [u.key for u in old], [u.key for u in new], autojunk=False).get_opcodes():
        same = [unit.key for unit in old[first:last]] == [unit.key for unit in new[begin:end]]
        if same:
            found += [_pair(*pair) for pair in zip(old[first:last], new[begin:end], strict=True)]
            continue
        gone += old[first:last]
        come += range(len(found), len(found) + end - begin)
        found += [Change("added", (), unit.words) for unit in new[begin:end]]
    return _moved(found, gone, come, {unit.words: unit for unit in new})


def _moved(found: list[Change], gone: list[_Unit], come: Sequence[int], units: dict[tuple[str, ...], _Unit]) -> list[Change]:
    """The changes with what only stands elsewhere now taken together; what is left of the old line comes last."""
    for place in come:
        unit = units[found[place].after]
        elder = next((one for one in gone if one.key == unit.key), None)
        if elder is not None:
            gone.remove(elder)
            found[place] = _pair(elder, unit)
    return [*found, *(Change("removed", unit.words, ()) for unit in gone)]


def _pair(old: _Unit, new: _Unit) -> Change:
    return Change("kept" if old.values == new.values else "changed", old.words, new.words)


def same(before: Sequence[str], after: Sequence[str], shape: Shape = PLAIN) -> bool:
    """Whether two command lines say the same."""
    return all(change.how == "kept" for change in compare(before, after, shape))


def _prefix(command: Sequence[str]) -> int:
    """How many words `env A=1 nice -n 5` take before the program."""
    return max((one.end for one in anatomy(command).wrappers if one.name in match.PREFIXES), default=0)


def _bare(before: Sequence[str], after: Sequence[str]) -> Sequence[str]:
    """The running line without an interpreter that the new line does not name: `python /venv/bin/torchrun` is `torchrun`."""
    given = match.given(before)
    if given is None or given.module or match.interpreter(after) is not None or not after:
        return before
    script = PurePosixPath(given.name).name == PurePosixPath(after[0]).name
    return [after[0], *before[given.place + 1 :]] if script else before


def _units(command: Sequence[str], shape: Shape) -> list[_Unit]:
    start = anatomy(command, shape.program).start
    units = [_Unit(f"program {place}" if place in (0, start - 1) else word, (word,), (word,)) for place, word in enumerate(command[:start])]
    end = command.index("--", start) if "--" in command[start:] else len(command)
    return [*units, *_arguments(command[start:end], shape), *(_Unit(word, (word,), ()) for word in command[end:])]


def _arguments(words: Sequence[str], shape: Shape) -> list[_Unit]:
    items = [Item(flag) for flag in shape.flags if not flag.env and shape.style_of(flag) == "option"]
    keys = shape.style == "keyval" or any(flag.style == "keyval" for flag in shape.flags)
    units: list[_Unit] = []
    at = 0
    while at < len(words):
        old = next((one for item in items if (one := item.old(words, at))), None)
        end = old.end if old else at + 1
        if old is not None:
            units.append(_Unit(canonical(old.name), tuple(words[at:end]), old.values))
        elif not is_value(words[at]):
            _, equals, value = words[at].partition("=")
            end += not equals and end < len(words) and is_value(words[end])
            units.append(_Unit(canonical(words[at]), tuple(words[at:end]), (value,) if equals else tuple(words[at + 1 : end])))
        elif keys and key_of(words[at])[1]:
            units.append(_Unit(f"{key_of(words[at])[1]}=", (words[at],), (words[at],)))
        else:
            units.append(_Unit(words[at], (words[at],), ()))
        at = end
    return units
