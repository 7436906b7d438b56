"""Flags as Hydra writes them, `lr=0.1`, `+x=1`, `++x=1`, `~y`: replaced by their key; every other word keeps its bytes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from deployctl.flags.item import Item

_OVERRIDE = re.compile(r"(\+\+|\+|~)?([A-Za-z_][^=\s]*)(=.*)?", re.DOTALL)
# Options of Hydra's with their value in the next word. Source: hydra/_internal/utils.py, get_args_parser
_VALUED = ("--config-name", "-cn", "--config-path", "-cp", "--config-dir", "-cd", "--package", "-p", "--cfg", "-c", "--experimental-rerun")


def key_of(word: str) -> tuple[str, str]:
    """(what stands before the key, the key) of an override; ("", "") for any other word."""
    found = _OVERRIDE.fullmatch(word)
    if found is None or not (found[3] or found[1] == "~"):
        return "", ""
    return found[1] or "", found[2]


def meet_keys(words: Sequence[str], items: Sequence[Item]) -> list[str]:
    """The words with the items in the place of what had their key.

    A new one stands before the first of its kind, since argparse takes the overrides of a program in one piece.
    """
    places = [place for place, word in enumerate(words) if key_of(word)[1] and not (place and words[place - 1] in _VALUED)]
    keys = {key: item for item in items for key in _keys(item)}
    new: dict[int, list[str]] = {}
    dropped = set[int]()
    for item in items:
        mine = [place for place in places if keys.get(key_of(words[place])[1]) is item]
        dropped.update(mine)
        at = mine[0] if mine else places[0] if places else 0
        new.setdefault(at, []).extend(_words(item, key_of(words[mine[0]])[0] if mine else ""))
    kept = [(*new.get(place, ()), *(() if place in dropped else (word,))) for place, word in enumerate(words)]
    return [word for part in (*kept, new.get(len(words), ()) if len(words) not in range(len(kept)) else ()) for word in part]


def _keys(item: Item) -> set[str]:
    """The keys whose old words go: those of the new words, and the flag's own."""
    own = key_of(f"{item.flag.spelled('keyval')}=")[1]
    return {own, *(key_of(f"{word}=")[1] for word in item.flag.also), *(key_of(word)[1] for word in item.raw)} - {""}


def _words(item: Item, before: str) -> list[str]:
    """The item's words; what stood before the old key (`+`) stays, unless the playbook says what stands there."""
    if item.raw or item.given is None:
        return list(item.raw)
    words = item.flag.render(item.given, "keyval")
    plain = before.startswith("+") and not item.flag.spelled("keyval").startswith("+")
    return [before + word if plain and word != item.flag.off else word for word in words]
