"""What comes after the end of the last process: whether something starts it again, and whether what it held is given back."""

from __future__ import annotations

import fcntl
import os
import subprocess
import time
from typing import Any, Callable, Dict, List, Optional

from . import files, procfs, tree
from .faults import Refused
from .procfs import Seen

WATCH = 2.0  # seconds for which a parent that lives on is watched: a loop starts the next one at once, a wrapper ends
WITHIN = 30.0  # seconds that ports, files and the GPU may take, unless the playbook says otherwise
POLL = 0.05  # seconds between two looks
GPU_POLL, GPU_ANSWER = 0.2, 5.0  # seconds between two readings; what one may take (it hangs with a sick driver)
SMI = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]


def respawned(job: Any, top: Seen) -> Optional[Dict[str, Any]]:
    """The verdict `respawned` with the new process as `pid`, when the parent of the ended one starts another; None otherwise.

    A parent that lives on is watched for up to 2 s: one that is no person's shell and not our own.
    """
    if top["ppid"] in (0, 1, os.getpid()) or (job.record is not None and job.record["pid"] == top["pid"]):
        return None
    until = time.monotonic() + WATCH
    while _waits(top):
        new = _anew(job)
        if new is not None:
            facts = ["parent: pid %d" % top["ppid"], "new: pid %d %s" % (new["pid"], " ".join(new["argv"])[:120])]
            return {
                "verdict": "respawned", "detail": "parent", "confidence": "proven", "also": [], "evidence": facts, "unreadable": [],
                "next": "none", "kill_useless": True, "pid": new["pid"],
            }  # fmt: skip
        if time.monotonic() > until:
            break
        time.sleep(POLL)
    return None


def _waits(top: Seen) -> bool:
    """Whether the parent lives, is older than the child was, and has no terminal.

    Source: proc_pid_stat(5), fields 7 tty_nr, 22 starttime.
    """
    try:
        _, fields = procfs.stat_of("/proc/%d/stat" % top["ppid"])
    except (OSError, ValueError):
        return False
    return fields[0] not in procfs.DEAD and int(fields[19]) <= top["started"] and fields[4] == "0"


def _anew(job: Any) -> Optional[Seen]:
    try:
        return tree.find(job.workload, None, job.mark).top
    except Refused:
        return None  # several: the launch will say so


def wait(free: Dict[str, Any], gpu: bool, heed: Callable[[], None]) -> List[str]:
    """Waits until the named ports and lock files are free and, where the workload held a GPU, its memory is given back.

    free: ports [number], files [path], within (seconds). What is still held at the bound, in words.
    """
    until = time.monotonic() + float(free.get("within", WITHIN))
    while True:
        held = _ports(free.get("ports", ())) + [said for said in map(_file, free.get("files", ())) if said]
        if not held or time.monotonic() > until:
            break
        heed()
        time.sleep(POLL)
    if gpu and free.get("gpu", True):
        _memory(until, heed)
    return held


def _ports(wanted: Any) -> List[str]:
    listening = {port["port"] for port in files.listening(os.getpid())} if wanted else set()
    return ["port %d is still listened on" % port for port in wanted if port in listening]


def _file(path: str) -> Optional[str]:
    """Why a lock file is not free: somebody has it locked, or it names a process. None when it is free or not there."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        word = os.read(handle, 32).split()
    except BlockingIOError:
        return "%s is still locked" % path
    except OSError:
        return None
    finally:
        os.close(handle)
    if not word or not word[0].isdigit():
        return None
    alive = procfs.glance(int(word[0])) is not None
    return "%s names pid %s, which %s" % (path, word[0].decode(), "lives" if alive else "is gone: it is stale")


def _memory(until: float, heed: Callable[[], None]) -> None:
    """Waits until the memory in use has stopped falling: it is given back a moment after the process is gone."""
    last: Optional[List[int]] = None
    while time.monotonic() < until:
        used = _used()
        if used is None or (last is not None and used >= last):
            return
        last = used
        heed()
        time.sleep(GPU_POLL)


def _used() -> Optional[List[int]]:
    """MiB in use on each GPU; None where nvidia-smi does not answer."""
    try:
        nothing = subprocess.DEVNULL
        done = subprocess.run(SMI, stdin=nothing, stdout=subprocess.PIPE, stderr=nothing, timeout=GPU_ANSWER, check=True)
        return [int(line) for line in done.stdout.split()]
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
