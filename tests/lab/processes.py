"""Processes of this machine: a process is its pid and its start time, since a pid alone may be someone else's by now."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.lab.errors import LabError


@dataclass(frozen=True)
class Process:
    """started is in clock ticks since boot. Source: proc_pid_stat(5), field 22."""

    pid: int
    started: int

    @property
    def alive(self) -> bool:
        return look(self.pid) == self

    def kill(self) -> None:
        """SIGKILL, to this process only."""
        with suppress(ProcessLookupError):
            descriptor = os.pidfd_open(self.pid)
            try:
                if self.alive:
                    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            finally:
                os.close(descriptor)


def look(pid: int) -> Process | None:
    """The process that has this pid; None for none and for a zombie, which is dead."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else Process(pid, int(fields[19]))


def parents(process: Process, program: str) -> list[Process]:
    """The parent of `process`, in a list, if it runs `program`."""
    with suppress(OSError, IndexError):
        parent = int(Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[1])
        found = look(parent)
        if found and command_line(parent)[:1] == [program]:
            return [found]
    return []


def pids() -> Iterator[int]:
    """Every pid that /proc shows."""
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def command_line(pid: int) -> list[str]:
    """argv, without the empty words that a process leaves which changed its title; [] when it is gone."""
    try:
        return [word for word in Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0") if word]
    except OSError:
        return []


def namespace_pids(pid: int) -> list[int]:
    """Its pid in each pid namespace, outermost first; [] when it is gone. Source: proc_pid_status(5), NSpid."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return []
    return [int(word) for line in status.splitlines() if line.startswith("NSpid:") for word in line.split()[1:]]


def outer_pid(keeper: int, inner: int) -> int | None:
    """The pid here of the process that has the pid `inner` where `keeper` is PID 1; None when there is none."""
    depth = len(namespace_pids(keeper))
    try:
        space = os.readlink(f"/proc/{keeper}/root/proc/{inner}/ns/pid")
    except OSError:
        return None
    for pid in pids():
        numbers = namespace_pids(pid)
        if len(numbers) >= depth > 0 and numbers[depth - 1] == inner:
            with suppress(OSError):
                if os.readlink(f"/proc/{pid}/ns/pid") == space:
                    return pid
    return None


def wait_for(what: str, true: Callable[[], object], within: float, todo: str) -> None:
    """Poll until `true()`; raises LabError after `within` seconds."""
    end = time.monotonic() + within
    while not true():
        if time.monotonic() > end:
            raise LabError(f"{what}: not after {within:g} s", todo)
        time.sleep(0.02)
