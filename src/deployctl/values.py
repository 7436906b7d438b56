"""Values that people write and read: numbers, durations, sizes, signals. Text in, number out, and back."""

from __future__ import annotations

import re

from deployctl.errors import WordsError, suggestion

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
SIGNALS = ("HUP", "INT", "QUIT", "USR1", "USR2", "TERM", "CONT", "STOP", "KILL", "ABRT", "ALRM")  # what a ladder may send
_MODE = re.compile(r"[0-7]{3,4}|[ugoa]*[-+=][rwxXst]*(,[ugoa]*[-+=][rwxXst]*)*")
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")


class Whole(int):
    """A whole number that remembers how it was written."""

    written: str

    def __new__(cls, text: str) -> Whole:
        """The number of a text of digits."""
        number = super().__new__(cls, text)
        number.written = text
        return number


class Real(float):
    """A number with a fraction or an exponent that remembers how it was written: `1e-4`, `0.10`."""

    written: str

    def __new__(cls, text: str) -> Real:
        """The number of a text that float() reads."""
        number = super().__new__(cls, text)
        number.written = text
        return number


def duration(text: object) -> float:
    """Seconds from '180s', '2m', '1h30m', '1.5s'. A number without a unit is refused, since nobody can see which
    unit was meant; 0 needs none.

    Raises WordsError.
    """
    words = str(text).strip().replace(" ", "")
    if words == "0":
        return 0.0
    parts = _PART.findall(words)
    if isinstance(text, bool) or not words or "".join(number + unit for number, unit in parts) != words:
        hint = f"write '{words}s' for seconds" if re.fullmatch(r"\d+(\.\d+)?", words) else "write for example 30s, 2m or 1h30m"
        raise WordsError(f"'{text}' is no duration", todo=hint)
    return sum(float(number) * UNITS[unit] for number, unit in parts)


def show_duration(seconds: float) -> str:
    """'85 ms', '1.4 s', '42 s', '3 min 05 s', '2 h 10 min', '5 d 3 h': as precise as a person needs."""
    if 0 < seconds < 0.9995:
        return f"{max(1, seconds * 1000):.0f} ms"
    if seconds < 10 and seconds != round(seconds):
        return f"{seconds:.1f} s"
    if round(seconds) < 120:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 120:
        return f"{minutes} min {rest:02d} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes:02d} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h"


def show_size(count: float) -> str:
    """'912 B', '20.5 KB', '1.3 GB': decimal units."""
    for unit in ("B", "KB", "MB", "GB"):
        if round(count, 1) < 1000:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def signal_name(text: str) -> str:
    """'INT' from 'INT', 'SIGINT' or 'int'. Raises WordsError for what is no signal that a ladder may send."""
    name = text.upper().removeprefix("SIG")
    if name not in SIGNALS:
        raise WordsError(f"'{text}' is no signal", todo=suggestion(name, SIGNALS))
    return name


def file_mode(text: object) -> str:
    """A mode as chmod takes it: '0644' or 'u=rw,go=r'. A number is refused: 644 without quotes is six hundred and forty-four.

    Raises WordsError.
    """
    if not isinstance(text, str):
        written = getattr(text, "written", text)
        raise WordsError(f"'{written}' is a number, and a mode is octal", todo=f"put it in quotes: '\"0{str(written).lstrip('0')}\"'")
    if not _MODE.fullmatch(text):
        raise WordsError(f"'{text}' is no mode", todo="write for example '0644' or 'u=rw,go=r', in quotes")
    return text
