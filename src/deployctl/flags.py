"""A declared flag of a workload: its option, parse, render, and how it meets the command line that is already there.

Text becomes a value in `Flag.parse` only, a value becomes text in `Flag.render` and `merge` only. It knows no command-line library.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from deployctl.errors import WordsError, suggestion
from deployctl.values import duration

Value = int | float | str | bool
TYPES = ("int", "float", "str", "bool", "choice", "path", "duration")
NUMBERS = ("int", "float", "duration")  # the types that have bounds
KEYS = ("type", "help", "min", "max", "choices", "default", "option")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_OPTION = re.compile(r"-[A-Za-z]|--?[A-Za-z][A-Za-z0-9_.-]*")
_NEGATIVE = re.compile(r"-(\d|\.\d)[0-9.eE+-]*|-inf|-nan")
_PYTHON = re.compile(r"(python|pypy)(\d+(\.\d+)?t?)?")
_PYTHON_VALUES = "WX"  # python's options with a value, attached or in the next word. Source: Python/getopt.c, SHORT_OPTS


@dataclass(frozen=True)
class Flag:
    """A flag of the workload that may be set. `option` is its spelling there where it is not `--name`.

    min, max and default are values as `parse` gives them (a duration in seconds).
    """

    name: str
    type: str = "str"
    help: str = ""
    min: float | None = None
    max: float | None = None
    choices: tuple[str, ...] = ()
    default: Value | None = None
    option: str = ""

    @property
    def spelling(self) -> str:
        """How the workload's program calls it: `--profile-interval`."""
        return self.option or f"--{self.name}"

    def parse(self, text: str) -> Value:
        """The value of a text. Raises WordsError when it is none, or out of bounds."""
        try:
            return self._bounded(text, self._value(text))
        except WordsError as error:
            raise WordsError(error.what, where=f"--{self.name}", todo=error.todo) from error

    def _value(self, text: str) -> Value:
        if "\0" in text:
            raise WordsError("the text holds a NUL byte", todo="remove it; no argument can carry one")
        if self.type == "int":
            if not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
                raise WordsError(f"'{text}' is no whole number", todo="write digits only")
            return int(text)
        if self.type == "float":
            return _number(text)
        if self.type == "duration":
            return duration(text)
        if self.type == "bool":
            if text not in ("true", "false"):
                raise WordsError(f"'{text}' is neither 'true' nor 'false'", todo="write one of the two")
            return text == "true"
        if self.type == "choice" and text not in self.choices:
            raise WordsError(f"'{text}' is no choice", todo=suggestion(text, self.choices))
        if self.type == "path" and not text:
            raise WordsError("'' is no path", todo="write a path of the target")
        return text

    def _bounded(self, text: str, value: Value) -> Value:
        if self.type in NUMBERS and not isinstance(value, str):
            if self.min is not None and value < self.min:
                raise WordsError(f"'{text}' is below {self.min:.15g}", todo=self._range())
            if self.max is not None and value > self.max:
                raise WordsError(f"'{text}' is above {self.max:.15g}", todo=self._range())
        return value

    def _range(self) -> str:
        unit = " seconds" if self.type == "duration" else ""
        if self.min is None or self.max is None:
            return f"give {f'at least {self.min:.15g}' if self.min is not None else f'at most {self.max:.15g}'}{unit}"
        return f"give {self.min:.15g} to {self.max:.15g}{unit}"

    def render(self, value: Value) -> list[str]:
        """The words of a command line that set it: `--f=v`, `-f v`; a true `--f`, a false nothing. A duration is its seconds."""
        if self.type == "bool":
            return [self.spelling] if value else []
        text = f"{value:.15g}" if self.type == "duration" and not isinstance(value, str) else str(value)
        if len(self.spelling) > 2:
            return [f"{self.spelling}={text}"]
        if not _is_value(text):
            raise WordsError(f"'{text}' begins with a dash", where=self.spelling, todo="only an option with a long name can carry it")
        return [self.spelling, text]


def _number(text: str) -> float:
    try:
        value = float(text) if re.fullmatch(r"[0-9.eE+-]+", text) else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise WordsError(f"'{text}' is no number", todo="write for example '0.5' or '1e-4'")
    return value


def declared(raw: Mapping[str, Any]) -> tuple[Flag, ...]:
    """The flags that the `flags:` of a playbook declare, from its plain data. Raises WordsError; `where` is then the flag's name."""
    return tuple(declare(name, fields) for name, fields in raw.items())


def declare(name: str, raw: object) -> Flag:
    """One flag from its name and its plain data. Raises WordsError; `where` is then its name."""
    try:
        return _declare(name, raw)
    except WordsError as error:
        raise WordsError(error.what, where=name, todo=error.todo) from error


def _declare(name: str, raw: object) -> Flag:
    fields = raw if isinstance(raw, dict) else {}
    if not isinstance(raw, dict):
        raise WordsError("wants a map of keys and values", todo="write for example '{type: int, help: …}'")
    if not _NAME.fullmatch(name):
        raise WordsError(f"'{name}' is no flag", todo="use letters, digits, '-' and '_', without the dashes in front")
    for key in fields:
        if key not in KEYS:
            raise WordsError(f"'{key}' is no key of flag", todo=suggestion(str(key), KEYS))
    kind = _written(fields.get("type", "str"))
    if kind not in TYPES:
        raise WordsError(f"'{kind}' is no type", todo=suggestion(kind, TYPES))
    option = _written(fields.get("option", f"--{name}"))
    if not _OPTION.fullmatch(option):
        raise WordsError(f"'{option}' is no option", todo="write it as the program spells it, for example '--batch_size' or '-b'")
    flag = Flag(name, kind, _written(fields.get("help") or ""), choices=_choices(kind, fields), option=option)
    return _with_values(flag, fields)


def _choices(kind: str, fields: Mapping[str, Any]) -> tuple[str, ...]:
    choices = fields.get("choices")
    if (kind == "choice") != bool(choices):
        raise WordsError("'choices' and 'type: choice' go together", todo="write both or none")
    if not isinstance(choices, list | None):
        raise WordsError("choices: wants a list", todo="write for example '[small, large]'")
    return tuple(_written(choice) for choice in choices or ())


def _with_values(flag: Flag, fields: Mapping[str, Any]) -> Flag:
    """The flag with bounds and default, each read as a value of its type."""
    bounds: dict[str, float] = {}
    for key in ("min", "max"):
        if fields.get(key) is not None:
            if flag.type not in NUMBERS:
                raise WordsError(f"a {flag.type} has no '{key}'", todo=f"remove it; these have: {', '.join(NUMBERS)}")
            bounds[key] = float(_inner(flag, key, fields[key]))
    flag = replace(flag, min=bounds.get("min"), max=bounds.get("max"))
    if flag.min is not None and flag.max is not None and flag.min > flag.max:
        raise WordsError("'min' is above 'max'", todo="exchange them")
    default = fields.get("default")
    return flag if default is None else replace(flag, default=_inner(flag, "default", default))


def _inner(flag: Flag, key: str, raw: object) -> Value:
    try:
        return flag.parse(_written(raw))
    except WordsError as error:
        raise WordsError(f"{key}: {error.what}", todo=error.todo) from error


def _written(raw: object) -> str:
    """The text of a scalar of a YAML file, as it was written there."""
    if isinstance(raw, (dict, list)) or raw is None:
        raise WordsError("wants a single value", todo="write a text or a number")
    if isinstance(raw, bool):
        return str(raw).lower()
    return str(getattr(raw, "written", raw))


def merge(command: tuple[str, ...], values: Iterable[tuple[Flag, Value]], extra: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The command line with the flags set, and with the undeclared flags `extra` (`--f=v` or a bare `--f`), which win.

    Every earlier occurrence before a bare `--` goes; the new one stands where the first of them stood, else right after the script.
    Doing it again changes nothing. Raises WordsError for an extra word that is no flag.
    """
    new, valued = _new_words(values, extra)
    at = program_position(command)
    end = command.index("--", at) if "--" in command[at:] else len(command)
    old, kept, placed, index = command[at:end], list[str](), set[str](), 0
    while index < len(old):
        word, spelling = old[index], old[index].partition("=")[0]
        index += 1
        if spelling not in new:
            kept.append(word)
            continue
        if word in valued and index < len(old) and _is_value(old[index]):
            index += 1
        kept.extend(() if spelling in placed else new[spelling])
        placed.add(spelling)
    front = [word for spelling, words in new.items() if spelling not in placed for word in words]
    return (*command[:at], *front, *kept, *command[end:])


def _new_words(values: Iterable[tuple[Flag, Value]], extra: tuple[str, ...]) -> tuple[dict[str, list[str]], set[str]]:
    """The words of each spelling, and the spellings whose earlier `--f v` has its value in the next word."""
    pairs = tuple(values)
    new = {flag.spelling: flag.render(value) for flag, value in pairs}
    valued = {flag.spelling for flag, _ in pairs if flag.type != "bool"}
    undeclared: dict[str, list[str]] = {}
    for word in extra:
        spelling, equals, _ = word.partition("=")
        if not _OPTION.fullmatch(spelling):
            raise WordsError(f"'{word}' is no flag", where="--", todo="write undeclared flags as '--flag=value' or '--flag'")
        undeclared.setdefault(spelling, []).append(word)
        valued |= {spelling} if equals and spelling not in new else set()
    return new | undeclared, valued


def _is_value(word: str) -> bool:
    """Whether a word after `--flag` can be its value: argparse takes a dash alone and a negative number."""
    return not word.startswith("-") or word == "-" or bool(_NEGATIVE.fullmatch(word))


def program_position(command: tuple[str, ...]) -> int:
    """The index right after the script (or `-m MODULE`) that an interpreter was given, else right after the program.

    What stands before it belongs to the interpreter; the flags of the workload stand behind it.
    """
    if not command or not _PYTHON.fullmatch(command[0].rpartition("/")[2]):
        return min(1, len(command))
    index = 1
    while index < len(command):
        word = command[index]
        index += 1
        if word == "--":
            return min(index + 1, len(command))
        if word == "-" or not word.startswith("-"):
            return index
        if word.startswith("--"):
            index += word == "--check-hash-based-pycs"
            continue
        letter, attached = _last_option(word)
        if letter in ("m", "c"):
            return min(index if attached else index + 1, len(command))
        index += letter != "" and not attached
    return min(index, len(command))


def _last_option(word: str) -> tuple[str, bool]:
    """The option with a value in a cluster like `-um`, and whether the value is attached (`-mpkg`); ("", False) without one."""
    for index, letter in enumerate(word[1:], start=1):
        if letter in f"mc{_PYTHON_VALUES}":
            return letter, index + 1 < len(word)
    return "", False
