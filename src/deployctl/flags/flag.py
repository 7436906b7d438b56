"""A declared flag of a workload: text becomes a value in `Flag.parse` only, a value becomes words in `Flag.render` only."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from deployctl.errors import WordsError, suggestion
from deployctl.values import Real, duration

Value = int | float | str | bool
Given = Value | tuple[Value, ...]  # several for a flag that takes several
TYPES = ("int", "float", "str", "bool", "choice", "path", "duration")
NUMBERS = ("int", "float", "duration")  # the types that have bounds
REPEATS = ("once", "replace", "append")
STYLES = ("option", "keyval")
_NEGATIVE = re.compile(r"-\d+|-\d*\.\d+")  # Source: argparse, _negative_number_matcher


@dataclass(frozen=True)
class Flag:
    """A flag of the workload that may be set (docs/flags.md says what each key means).

    min, max and default are values as `parse` gives them (a duration in seconds). `spelling` is how the program calls it where that is
    not `--name`; `option` how deployctl does; `newest` is a pattern of files that the job chooses from; `style` and `subcommand` are the
    workload's where they are None.
    """

    name: str
    type: str = "str"
    help: str = ""
    min: float | None = None
    max: float | None = None
    choices: tuple[str, ...] = ()
    default: Given | None = None
    spelling: str = ""
    option: str = ""
    also: tuple[str, ...] = ()
    off: str = ""
    repeat: str = "once"
    nargs: str = ""
    env: str = ""
    style: str | None = None
    subcommand: str | None = None
    newest: str = ""
    complete: tuple[str, ...] = ()

    @property
    def called(self) -> str:
        """How deployctl's own command line calls it: `profile-interval`."""
        return self.option or self.name

    @property
    def several(self) -> bool:
        """Whether it takes more than one value."""
        return self.repeat != "once" or bool(self.nargs)

    @property
    def mark(self) -> str:
        """What stands for a file until the job has chosen it."""
        return f"<newest {self.newest}>"

    def spelled(self, style: str) -> str:
        """How the workload's program calls it: `--profile-interval`, or `profile-interval` among key=value words."""
        return self.spelling or (self.name if style == "keyval" else f"--{self.name}")

    def read(self, texts: Sequence[str]) -> Given:
        """The values of what was written; several only for a flag that takes several. Raises WordsError."""
        values = tuple(self.parse(text) for text in texts)
        if self.nargs.isdigit() and len(values) != int(self.nargs):
            raise WordsError(
                f"wants {self.nargs} values, not {len(values)}", where=f"--{self.called}", todo="give the option once for each"
            )
        if not values:
            raise WordsError("has no value", where=f"--{self.called}", todo="give it one")
        return values if self.several else values[-1]

    def parse(self, text: str) -> Value:
        """The value of a text. Raises WordsError when it is none, or out of bounds."""
        try:
            return self._bounded(text, self._value(text))
        except WordsError as error:
            raise WordsError(error.what, where=f"--{self.called}", todo=error.todo) from error

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

    def text(self, value: Value) -> str:
        """A value as the program reads it. A duration is its seconds, a number with a fraction stays as it was written."""
        if isinstance(value, bool):
            return "true" if value else "false"
        return f"{value:.15g}" if self.type == "duration" and not isinstance(value, str) else str(getattr(value, "written", value))

    def written(self, given: Given) -> list[str]:
        """The texts that `read` makes the same values of: what is remembered of a launch."""
        unit = "s" if self.type == "duration" else ""
        return [self.text(value) + unit for value in values_of(given)]

    def render(self, given: Given, style: str = "option") -> list[str]:
        """The words that set it: `--f=v`, `-f v`, `--f a b`, `f=v`; a switch `--f`, switched off nothing or `off`. Raises WordsError."""
        spelling = self.spelled(style)
        if self.type == "bool" and not (style == "keyval" and not self.off):
            return [spelling if style == "option" else f"{spelling}=true"] if given else [self.off] if self.off else []
        texts = [self.text(value) for value in values_of(given)]
        if style == "keyval":
            return [f"{spelling}={text}" for text in texts]
        if self.nargs:
            return [spelling, *(_bare(spelling, text) for text in texts)] if texts else []
        return [word for text in texts for word in joined(spelling, text)]

    def variable(self, given: Given) -> str | None:
        """The text of the environment variable that it sets; None for one that is not to be there: a switch that is off."""
        if self.type == "bool":
            return "1" if given else self.off or None
        return " ".join(self.text(value) for value in values_of(given))


def values_of(given: Given) -> tuple[Value, ...]:
    """One value or several, as several."""
    return given if isinstance(given, tuple) else (given,)


def joined(spelling: str, text: str) -> list[str]:
    """An option and its value as no parser mistakes it: `--f=-1e-4`, `-f 8`, `-f-1e-4`. Raises WordsError for what none can take."""
    if text == "--":
        raise WordsError("'--' as a value is lost on the way", where=spelling, todo="argparse before 3.13 drops it; give another one")
    if len(spelling) > 2:
        return [f"{spelling}={text}"]
    return [spelling, text] if is_value(text) else [f"{spelling}{text}"]


def _bare(spelling: str, text: str) -> str:
    if not is_value(text):
        raise WordsError(f"'{text}' begins with a dash", where=spelling, todo="a flag with nargs cannot carry it")
    return text


def is_value(word: str) -> bool:
    """Whether a word behind an option can be its value: argparse takes a dash alone and a plain negative number."""
    return not word.startswith("-") or word == "-" or bool(_NEGATIVE.fullmatch(word))


def _number(text: str) -> float:
    try:
        value = Real(text) if re.fullmatch(r"[0-9.eE+-]+", text) else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise WordsError(f"'{text}' is no number", todo="write for example '0.5' or '1e-4'")
    return value
