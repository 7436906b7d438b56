"""The first playbook of a process that runs: text of a YAML file, from what the agent read. It knows no target and writes no file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from deployctl.errors import RefusedError
from deployctl.flags.anatomy import anatomy, canonical
from deployctl.flags.flag import is_value

_PLAIN = re.compile(r"(--?[A-Za-z]|[A-Za-z/.])[A-Za-z0-9_./=+-]*|[0-9]+(\.[0-9]+)?")
_WORDS = ("true", "false", "null", "yes", "no", "on", "off", "y", "n")  # what a YAML reader may take for something else
_INT, _FLOAT = re.compile(r"-?\d{1,18}"), re.compile(r"-?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
NOTES = {
    "deaf": "it ignores INT, TERM or QUIT, as a shell's & makes it; the next start will not",
    "terminal": "it has a terminal; the next start will have none",
    "pipe": "its output goes into a pipe or terminal; the next start writes the log below",
    "truncates": "its log was begun anew at its start (>); the next start appends",
    "umask": "it has another umask than 022",
    "nice": "it was started with nice",
    "replaced": "its program was replaced on disk since it started",
    "sockets": "it was handed sockets by a service manager; the next start will have none",
}


def playbook(name: str, match: str, found: Mapping[str, Any], taken: Sequence[str]) -> str:
    """The text of a playbook. found: the agent's answer to `adopt`; taken: the options of deployctl, which no flag may have.

    Raises RefusedError for what no YAML file can hold.
    """
    command = [_program(found), *found["argv"][1:]]
    log, directory = found["log"], found["directory"]
    if log is not None and PurePosixPath(log).is_relative_to(directory):
        log = str(PurePosixPath(log).relative_to(directory))
    lines = [
        f"description: Restart {name}",
        *[f"# {NOTES[note]}" for note in found["notes"]],
        "workload:",
        f"  name: {name}",
        f"  directory: {_scalar(directory)}",
        f"  command: [{', '.join(map(_scalar, command))}]",
        f"  log: {_scalar(log or f'logs/{name}.log')}",
        f"  match: {_scalar(match)}",
        *([f"  user: {_scalar(found['user'])}"] if found["user"] else []),
        *_environment(found),
        *_flags(command, taken),
        "steps:",
        "  # - push: {from: ../src, to: …}      # then also '- verify: py_compile'",
        "  - stop: [INT 180s, TERM 30s, KILL 10s]",
        "  - launch",
        "  - check: {alive: 10s}",
    ]
    return "\n".join(lines) + "\n"


def _program(found: Mapping[str, Any]) -> str:
    """The program as a path, so that a clean environment finds the same one; a path of the command line's own stays."""
    first: str = found["argv"][0]
    return first if "/" in first and PurePosixPath(first).name == PurePosixPath(found["program"]).name else found["program"]


def _environment(found: Mapping[str, Any]) -> list[str]:
    lines = [f"    {name}: {_scalar(text)}" for name, text in sorted(found["environment"].items())]
    others = [f"  # it also has these variables, whose values were not read out: {', '.join(found['names'])}"] if found["names"] else []
    return [*(["  environment:", *lines] if lines else []), *others]


def _flags(command: Sequence[str], taken: Sequence[str]) -> list[str]:
    """A declared flag for each option of the program that has a number."""
    kinds: dict[str, str] = {}
    words = list(command[anatomy(command).start :])
    words = words[: words.index("--")] if "--" in words else words
    for word, behind in zip(words, [*words[1:], "--"], strict=False):
        _, equals, value = word.partition("=")
        text = value if equals else behind
        name = canonical(word).removeprefix("--")
        if word.startswith("--") and re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", name) and (equals or is_value(text)):
            kind = "int" if _INT.fullmatch(text) else "float" if _FLOAT.fullmatch(text) else ""
            kinds[name] = kind if kinds.get(name, kind) == kind else "float" if kind else ""
    lines = [f"  {name}: {{type: {kind}{f', option: train-{name}' if name in taken else ''}}}" for name, kind in kinds.items() if kind]
    return ["flags:", *lines] if lines else []


def _scalar(text: str) -> str:
    """A text as YAML reads it back. Raises RefusedError for bytes that are no text."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise RefusedError(f"{text!r} is no UTF-8 text", where="adopt", todo="write the playbook by hand, without it")
    return text if _PLAIN.fullmatch(text) and text.lower() not in _WORDS else json.dumps(text, ensure_ascii=False)
