"""Processes as this machine's kernel shows them, past deployctl and the lab: a container's processes are here too, with another pid."""

from __future__ import annotations

import os
import signal
import threading
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

from tests.lab import processes

EVERY = 0.04  # seconds between two samples


@dataclass(frozen=True)
class Sight:
    """pid on this machine and in the container; started in clock ticks since boot (proc_pid_stat(5), field 22)."""

    pid: int
    inner: int
    started: int
    argv: tuple[str, ...]

    @property
    def alive(self) -> bool:
        """Whether this very process lives; a zombie is dead."""
        return processes.look(self.pid) == processes.Process(self.pid, self.started)

    def send(self, number: int) -> bool:
        """A signal to this very process; False when it is gone."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return False
        try:
            if not self.alive:
                return False
            signal.pidfd_send_signal(handle, number)
        except ProcessLookupError:
            return False
        finally:
            os.close(handle)
        return True


def sight(pid: int) -> Sight | None:
    """The living process that has the pid."""
    found, numbers = processes.look(pid), processes.namespace_pids(pid)
    if found is None or not numbers:
        return None
    return Sight(pid, numbers[-1], found.started, tuple(processes.command_line(pid)))


def with_argv(*needles: str) -> list[Sight]:
    """The living processes whose command line, as ps shows it, holds all of these."""
    wanted = [needle.encode() for needle in needles]
    return [seen for pid in processes.pids() if _holds(pid, wanted) and (seen := sight(pid))]


def _holds(pid: int, needles: list[bytes]) -> bool:
    try:
        with open(f"/proc/{pid}/cmdline", "rb", buffering=0) as file:
            line = file.read().replace(b"\0", b" ")
    except OSError:
        return False
    return all(needle in line for needle in needles)


def trainers(script: str) -> list[Sight]:
    """Those that run the script: an interpreter whose first argument it is."""
    return [seen for seen in with_argv(script) if seen.argv[1:2] == (script,) and "python" in Path(seen.argv[0]).name]


def children(pid: int) -> list[int]:
    """Pids of the living children."""
    return [int(word) for task in _tasks(pid) for word in _read(f"/proc/{pid}/task/{task}/children").split()]


def descendants(pid: int) -> list[int]:
    """Pids of all below, parents first."""
    below: list[int] = []
    for child in children(pid):
        below += [child, *descendants(child)]
    return below


def _tasks(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


class Sampler(threading.Thread):
    """Looks again and again whether two trainers are alive at one moment. `doubles` holds what was seen."""

    def __init__(self, script: str) -> None:
        super().__init__(name=f"sampler {script}", daemon=True)
        self._script, self._over = script, threading.Event()
        self.doubles: list[tuple[Sight, ...]] = []
        self.troubles: list[str] = []

    def run(self) -> None:
        """Until `close`."""
        try:
            while not self._over.wait(EVERY):
                self._sample()
        except Exception:
            self.troubles.append(traceback.format_exc())

    def _sample(self) -> None:
        seen = trainers(self._script)
        # A scan takes time: two that were seen one after the other lived together only if all still live now.
        if len(seen) > 1 and all(one.alive for one in seen):
            self.doubles.append(tuple(seen))

    def close(self) -> None:
        """Ends the thread."""
        self._over.set()
        self.join()


def wait_until_gone(needles: tuple[str, ...], without: str, within: float) -> list[Sight]:
    """Waits for the end of those processes, and of their children of the same kind; what is left at the deadline."""
    until = time.monotonic() + within
    while left := [seen for seen in with_argv(*needles) if without not in " ".join(seen.argv)]:
        if time.monotonic() > until:
            return left
        time.sleep(0.02)
    return []
