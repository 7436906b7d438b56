"""Where a command's first word leads: the program, its interpreter, its virtual environment."""

from __future__ import annotations

import os
import re
from typing import Dict, Mapping, NamedTuple, Optional, Sequence

from .faults import Refused

DELETED = " (deleted)"


class Program(NamedTuple):
    """path is what argv[0] leads to; interpreter is what the kernel starts (another file for a script with `#!`); prefix is the
    virtual environment that the interpreter belongs to, or None."""

    path: str
    interpreter: str
    prefix: Optional[str]

    @property
    def identity(self) -> tuple:  # type: ignore[type-arg]
        """Equal for two spellings of one program: a virtual environment's python is not the python that it was made from."""
        return os.path.realpath(self.interpreter), self.prefix and os.path.realpath(self.prefix)

    def as_dict(self) -> Dict[str, Optional[str]]:
        """As JSON values."""
        return {"path": self.path, "interpreter": self.interpreter, "prefix": self.prefix}


def locate(word: str, path: str, directory: str) -> Optional[str]:
    """The file that execvp would start for the word, made absolute; None when there is none."""
    if "/" in word:
        return os.path.normpath(os.path.join(directory, word)) if os.path.exists(os.path.join(directory, word)) else None
    for part in path.split(":"):
        candidate = os.path.join(directory, part or ".", word)
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
    return None


def find(argv: Sequence[str], environment: Mapping[str, str], directory: str) -> Program:
    """The program that the argv starts in that environment and directory. Raises Refused when it cannot be started."""
    path = environment.get("PATH", "")
    located = locate(argv[0], path, directory)
    if located is None:
        looked = "" if "/" in argv[0] else " in PATH %s" % path
        raise Refused("there is no program '%s'%s" % (argv[0], looked), where="workload: command", todo="install it, or name its path")
    if os.path.isdir(located) or not os.access(located, os.X_OK):
        raise Refused("'%s' cannot be executed" % located, where="workload: command", todo="it needs the right to be executed (chmod +x)")
    return Program(located, *_interpreter(located, path, directory))


def _interpreter(located: str, path: str, directory: str) -> "tuple[str, Optional[str]]":
    with open(located, "rb") as stream:
        head = stream.read(256)
    first = head.split(b"\n")[0]
    interpreter = located
    if first.startswith(b"#!"):
        # As for the kernel, a carriage return belongs to the name.
        words = [word for word in re.split("[ \t]+", os.fsdecode(first[2:])) if word]
        if words and os.path.basename(words[0]) == "env":
            words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
            words = [locate(words[0], path, directory) or words[0]] if words else []
        if words and os.path.exists(words[0]) and not os.access(words[0], os.X_OK):
            raise Refused("its interpreter '%s' cannot be executed" % words[0], where=located, todo="mend its first line")
        if not words or not os.path.exists(words[0]):
            name = words[0] if words else os.fsdecode(first)
            raise Refused("its interpreter '%s' does not exist" % name, where=located, todo="mend its first line (also its line end)")
        interpreter = words[0]
    elif b"\0" not in head and not head.startswith(b"\x7fELF"):  # what is no text may be anything that binfmt_misc knows
        raise Refused("it is a text without a first line '#!'", where=located, todo="name its interpreter in `command`, or there")
    return interpreter, prefix_of(interpreter)


def prefix_of(interpreter: str) -> Optional[str]:
    """The virtual environment of an interpreter: Python looks for pyvenv.cfg beside and above the path it was started by."""
    for up in (os.path.dirname(interpreter), os.path.dirname(os.path.dirname(interpreter))):
        if os.path.isfile(os.path.join(up, "pyvenv.cfg")):
            return up
    return None


def running(argv: Sequence[str], environment: Mapping[str, str], directory: str, exe: str) -> Program:
    """The program of a process that runs: where its argv[0] led by its own PATH, if that is its exe, else the exe.

    exe alone cannot tell: in a virtual environment it is the base interpreter. Source: proc_pid_exe(5).
    """
    exe = exe[: -len(DELETED)] if exe.endswith(DELETED) and os.path.exists(exe[: -len(DELETED)]) else exe  # replaced by an update
    located = locate(argv[0], environment.get("PATH", ""), directory) if argv else None
    if located is not None and os.path.realpath(located) == os.path.realpath(exe):
        return Program(located, located, prefix_of(located))
    return Program(exe, exe, None)
