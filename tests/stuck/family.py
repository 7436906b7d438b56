"""What the driver itself reads and does with processes; deployctl's own looks are what is tried, so they are not used here."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE = 20.0  # seconds for what must come
SET_SUBREAPER = 36  # Source: prctl(2)


def adopt() -> None:
    """Who loses its parent below us becomes our child, so that nobody gets out of sight."""
    if ctypes.CDLL(None, use_errno=True).prctl(SET_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def until(condition: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {patience:.0f} s")
        time.sleep(0.02)


def stat(pid: int) -> list[str]:
    """The fields from the state on; empty when there is no such process. Source: proc_pid_stat(5)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(") ")[2].split()
    except OSError:
        return []


def state(pid: int) -> str:
    return (stat(pid) or ["gone"])[0]


def ended(pid: int) -> bool:
    """Whether no thread of it lives: a main thread in state Z alone is no end."""
    try:
        tasks = [path.read_text(errors="replace") for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    except OSError:  # one went while we looked
        return ended(pid)
    return all(text.rpartition(") ")[2][:1] in "ZX" for text in tasks)


def started(pid: int) -> str:
    return (stat(pid) or [""] * 20)[19]


def pending(pid: int, name: str) -> bool:
    """Whether the signal waits in a queue of the process or of one of its threads."""
    bit = 1 << (signal.Signals[f"SIG{name}"] - 1)
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        try:
            lines = status.read_text(errors="replace").splitlines()
        except OSError:
            continue
        if any(int(line.split()[1], 16) & bit for line in lines if line.startswith(("SigPnd:", "ShdPnd:"))):
            return True
    return False


def dumps_core(pid: int) -> bool:
    try:
        return "CoreDumping:\t1" in Path(f"/proc/{pid}/status").read_text(errors="replace")
    except OSError:
        return False


def descendants(pid: int) -> list[int]:
    """Everybody below the process."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := stat(int(entry.name))):
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, queue = [], [pid]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def reap() -> None:
    """Collects the dead that were left to us."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def end_all(patience: float = PATIENCE) -> list[int]:
    """Ends everybody below us, pid by pid, until nobody is left; the pids that would not go."""
    end = time.monotonic() + patience
    left = descendants(os.getpid())
    while left and time.monotonic() < end:
        for pid in left:
            send(pid, signal.SIGKILL)
            send(pid, signal.SIGCONT)
        time.sleep(0.02)
        reap()
        left = descendants(os.getpid())
    return left


def defaults() -> None:
    """All signals as a login has them: who started the tests may have ignored or blocked some."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        try:
            signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):
            pass  # those that the C library keeps for itself
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
