"""The workload of a plan as data: what the long-running program is and how it is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Rung:
    """One signal of a ladder, and how long to wait after it (seconds of the job's own time)."""

    signal: str
    wait: float
    more: Mapping[str, Any] = field(default_factory=dict)  # to, again, only_if, unless, as far as they are given

    def as_data(self) -> dict[str, Any]:
        """The rung as an operation of the job carries it."""
        return {"signal": self.signal, "wait": self.wait, **self.more}


DEFAULT_LADDER = (Rung("INT", 180.0), Rung("TERM", 30.0), Rung("KILL", 10.0))


@dataclass(frozen=True)
class Workload:
    """A long-running program, bound: `command` holds the flags that it will be launched with.

    directory is absolute; log is absolute or relative to it; match is how a process is known that deployctl did not start
    (docs/playbook.md); environment is added to the clean one.
    """

    name: str
    directory: str
    command: tuple[str, ...]
    log: str | None = None
    match: Any = None
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None
    flags: Mapping[str, Sequence[str]] = field(default_factory=dict)  # what the launch remembers: by name, as they were written
    flags_before: Mapping[str, Sequence[str]] = field(default_factory=dict)  # what the last launch remembered
    inherit: bool = False  # command, directory, environment and user are those of the running process
    newest: tuple[Mapping[str, Any], ...] = ()  # files that the job chooses after the stop; their marks stand in command and environment
    without: tuple[str, ...] = ()  # variables that flags take away from an inherited environment

    def as_data(self) -> dict[str, Any]:
        """The workload as the agent reads it."""
        return {
            "name": self.name,
            "directory": self.directory,
            "command": list(self.command),
            "log": self.log,
            "match": self.match,
            "environment": dict(self.environment),
            "user": self.user,
            "flags": {name: list(texts) for name, texts in self.flags.items()},
            "inherit": self.inherit,
            "flags_before": {name: list(texts) for name, texts in self.flags_before.items()},
        }
