"""The lab's cgroups: one directory of its own in each mounted hierarchy, version 1 and 2."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tests.lab.processes import wait_for


def hierarchies() -> list[Path]:
    """Where cgroups are mounted. Source: proc_pid_mountinfo(5)."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        if after.split()[0] in ("cgroup", "cgroup2"):
            found.append(Path(before.split()[4]))
    return found


def directories(name: str) -> Iterator[Path]:
    """The lab's cgroup directories, wherever they hang, children before their parents."""
    for hierarchy in hierarchies():
        for directory, _, _ in os.walk(hierarchy, topdown=False):
            if name in Path(directory).parts:
                yield Path(directory)


def at_root(*argv: str) -> list[str]:
    """The argv that runs `argv` in the root cgroups.

    LXC hangs a container's cgroups below those of who starts it, and the lab outlives the session that it was started from.
    """
    files = " ".join(shlex.quote(f"{hierarchy}/cgroup.procs") for hierarchy in hierarchies())
    return ["sh", "-c", f'for file in {files}; do echo $$ >"$file"; done 2>/dev/null; exec "$@"', "sh", *argv]


def thaw(name: str) -> None:
    """Let frozen containers run, parents first: a frozen process does not die of SIGKILL in a version 1 freezer."""
    for directory in reversed(list(directories(name))):
        for file, word in (("freezer.state", "THAWED"), ("cgroup.freeze", "0")):
            with suppress(OSError):
                if (directory / file).exists():
                    (directory / file).write_text(word)


def remove(name: str) -> None:
    """Remove the directories; a dead process holds its cgroup for a moment."""

    def gone() -> bool:
        for directory in directories(name):
            with suppress(OSError):
                directory.rmdir()
        return not any(directories(name))

    wait_for(f"cgroups of {name}: removed", gone, 15, "look which processes stand in their cgroup.procs, then run `lab down` again")
