"""The workload of a plan as data: what the long-running program is and how it is known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

ELASTIC = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"  # seconds
ELASTIC_MODULES = ("torch.distributed.run", "torch.distributed.launch")


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
    (docs/playbook.md). The environment is the base (clean or inherit), implied (what the command's launcher needs), what env_file in the
    target says, and environment; later ones win. limits: {RLIMIT_NAME: (soft, hard)}, -1 for none.
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
    environment_base: str = "clean"
    env_file: str | None = None
    implied: Mapping[str, str] = field(default_factory=dict)
    groups: tuple[str, ...] | None = None
    umask: int = 0o022
    nice: int | None = None
    oom_score_adj: int | None = None
    limits: Mapping[str, tuple[int, int]] = field(default_factory=dict)
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
            "environment_base": self.environment_base,
            "env_file": self.env_file,
            "implied": dict(self.implied),
            "groups": None if self.groups is None else list(self.groups),
            "umask": self.umask,
            "nice": self.nice,
            "oom_score_adj": self.oom_score_adj,
            "limits": {name: list(pair) for name, pair in self.limits.items()},
        }


def implied(command: Sequence[str], environment: Mapping[str, str], ladder: Sequence[Rung]) -> dict[str, str]:
    """What the command's launcher needs in its environment: torchrun's agent kills its ranks 30 s after a signal, whatever a rung says.

    Its limit becomes the first rung and 30 s more, unless the command or the playbook sets it. Source: torch.distributed.elastic,
    TORCH_ELASTIC_SHUTDOWN_TIMEOUT.
    """
    options = (word.partition("=")[0].replace("_", "-") for word in command)
    if not _is_elastic(command) or ELASTIC in environment or "--shutdown-timeout" in options:
        return {}
    return {ELASTIC: f"{math.ceil(ladder[0].wait) + 30}"}


def _is_elastic(command: Sequence[str]) -> bool:
    for place, word in enumerate(command):
        following = command[place + 1] if place + 1 < len(command) else ""
        name = word.rpartition("/")[2]
        if name == "torchrun" or (word == "-m" and following in ELASTIC_MODULES):
            return True
        if name == "accelerate" or (word == "-m" and following.startswith("accelerate.commands")):
            return "launch" in command[place + 1 :] or following.endswith(".launch")
        if name.endswith(".py") or word == "-m":
            return False
    return False
