"""Text that came from a target, made safe for a terminal, and short forms of long things."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from typing import Any

from deployctl.values import show_duration

LONGEST = 400  # characters of one foreign text in a line


def safe(text: object, longest: int = LONGEST) -> str:
    """Foreign text as one printable line: control characters, terminal escapes and lone surrogates are shown, not sent."""
    shown = "".join(_shown(character) for character in str(text))
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    if character == "\t":
        return " "
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def command(argv: Sequence[str], longest: int = LONGEST) -> str:
    """A command line as a person would type it."""
    return safe(shlex.join(str(word) for word in argv), longest)


def clock(seconds: float) -> str:
    """A moment of today as its time, another day with its date."""
    moment = time.localtime(seconds)
    today = time.localtime()
    form = "%H:%M:%S" if moment[:3] == today[:3] else "%Y-%m-%d %H:%M"
    return time.strftime(form, moment)


def ago(seconds: float, now: float | None = None) -> str:
    """How long ago a moment was."""
    return show_duration(max(0.0, (time.time() if now is None else now) - seconds))


def count(number: int, word: str) -> str:
    """'1 file', '3 files', '2 processes'."""
    return f"{number} {word}{'' if number == 1 else 'es' if word.endswith('s') else 's'}"


def process(seen: dict[str, Any]) -> str:
    """A process in one line: pid, since when, command line."""
    since = f", since {clock(seen['since'])}" if seen.get("since") else ""
    return f"pid {seen['pid']}{since}: {command(seen['argv'])}"


def remembered(texts: Mapping[str, Sequence[str]]) -> list[str]:
    """Flags as a launch remembers them, one a text: `--lr 1e-4`; undeclared ones as they were written."""
    return [command(words if name == "--" else [f"--{name}", *words]) for name, words in texts.items()]


def unfinished(left: dict[str, Any]) -> str:
    """The run that has no end, and how far it came."""
    at = f"in {safe(left['op'])}" if left.get("op") else "before its first operation"
    return f"run {safe(left['run'])} has no end: it was killed {at}"


def holder(held: dict[str, Any]) -> str:
    """Who holds a workload, from where, since when, by which run, doing what."""
    since = f" since {clock(held['since'])}" if "since" in held else ""
    doing = f", in {held['op']}" if held.get("op") else ""
    return safe(f"{held.get('user', 'somebody')}@{held.get('host', 'an unknown host')}{since} (run {held.get('run', 'unknown')}{doing})")
