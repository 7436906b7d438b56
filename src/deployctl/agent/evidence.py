"""Everything that the rules look at in one process, at one moment. It sends nothing, attaches to nothing, and judges nothing.

A sample is {"at" (monotonic seconds), "time" (epoch), "seen" (None: gone), "usage", "wchan", "threads", "flags", "dumping", "exe", "cwd",
"fds", "files", "ports", "cgroup", "gpu", "unreadable"}: JSON values, so that one of today can be compared with one of an hour ago.
"""

from __future__ import annotations

import os
import re
import time
from typing import Any, Dict, List, Optional, Sequence, Tuple

from . import calls, cgroups, files, procfs
from .procfs import Seen

Sample = Dict[str, Any]
Thread = Dict[str, Any]
APART = 0.5  # seconds between two samples, at least, before a rate means anything
EXITING, DUMPED, SIGNALED = 0x4, 0x200, 0x400  # PF_EXITING, PF_DUMPCORE, PF_SIGNALED. Source: the kernel's sched.h
MOST, MOST_THREADS = 24, 256  # processes of a tree, threads of a process, that are looked at closely
_PROGRAM = re.compile(r"(python|pypy|ruby|perl|node)[\d.]*t?")


def samples(members: Sequence[Seen]) -> List[Sample]:
    """A sample of each of the first ones that live."""
    return [taken for taken in map(sample, members[:MOST]) if taken["seen"] is not None]


def sample(seen: Seen) -> Sample:
    """The process at this moment, dead or alive; `seen` names it by pid and start time."""
    now = procfs.look(seen["pid"])
    if now is None or now["started"] != seen["started"]:
        return gone()
    pid, unread = now["pid"], list(now["unreadable"])
    taken = dict(gone(), seen=now, usage=usage(pid, unread), wchan=_wchan("/proc/%d" % pid), threads=_threads(pid, unread))
    try:
        taken["flags"] = int(procfs.stat_of("/proc/%d/stat" % pid)[1][6])
        status = procfs.status_of("/proc/%d/status" % pid)
    except (OSError, ValueError):
        return gone()
    taken["dumping"] = status.get("CoreDumping") == "1"
    taken["nspid"] = [int(word) for word in status.get("NSpid", str(pid)).split()]
    for name in ("exe", "cwd"):
        taken[name] = files.link("/proc/%d/%s" % (pid, name), unread, name)
    taken.update(files.look(pid, unread))
    taken["cgroup"] = cgroups.look(pid)
    taken["unreadable"] = list(dict.fromkeys(unread + taken["cgroup"]["unreadable"]))
    return taken


def gone() -> Sample:
    """The sample of a process that is not there."""
    return {
        "at": time.monotonic(), "time": time.time(), "seen": None, "usage": None, "wchan": None, "threads": [], "flags": 0,
        "dumping": False, "nspid": [], "exe": None, "cwd": None, "fds": {}, "files": [], "ports": [], "cgroup": None, "gpu": False,
        "unreadable": [],
    }  # fmt: skip


def usage(pid: int, unread: List[str]) -> Optional[Dict[str, Optional[int]]]:
    """procfs.usage with `read_bytes`, `demand`, and `dirtied_bytes` (written through a mapping as well); None for what may not be known."""
    used = procfs.usage(pid)
    if used is None:
        return None
    used["demand"] = _demand(pid)
    try:
        lines = dict(line.split(b":") for line in procfs.read("/proc/%d/io" % pid).splitlines())
        used["read_bytes"], used["dirtied_bytes"] = int(lines[b"rchar"]), int(lines[b"write_bytes"])
    except (OSError, ValueError, KeyError):
        used["read_bytes"] = used["dirtied_bytes"] = None
        unread.append("io")
    return used


def _demand(pid: int) -> Optional[int]:
    """Nanoseconds that its threads have run and have waited for a CPU. Source: the kernel's sched-stats, /proc/PID/schedstat."""
    try:
        words = (procfs.read("/proc/%d/task/%s/schedstat" % (pid, name)).split() for name in os.listdir("/proc/%d/task" % pid))
        return sum(int(word[0]) + int(word[1]) for word in words)
    except (OSError, ValueError, IndexError):
        return None


def _wchan(base: str) -> Optional[str]:
    try:
        wchan = procfs.text(procfs.read(base + "/wchan")).strip("\0\n")
    except OSError:
        return None
    return None if wchan in ("", "0") else wchan  # "0" means running, or not permitted. Source: proc_pid_wchan(5)


def _threads(pid: int, unread: List[str]) -> List[Thread]:
    """The threads, the main one first; of very many the first ones."""
    try:
        names = sorted(os.listdir("/proc/%d/task" % pid), key=lambda name: (name != str(pid), int(name)))
    except OSError:
        unread.append("task")
        return []
    found = (_thread("/proc/%d/task/%s" % (pid, name), int(name), unread) for name in names[:MOST_THREADS])
    return [thread for thread in found if thread is not None]


def _thread(base: str, tid: int, unread: List[str]) -> Optional[Thread]:
    """{"tid", "comm", "state", "flags", "cpu_ticks", "switches" (voluntary), "blocked", "call" (None: runs, or not "known"),
    "known", "wchan"}."""
    try:
        comm, fields = procfs.stat_of(base + "/stat")
        status = procfs.status_of(base + "/status")
    except (OSError, ValueError):
        return None
    call, known = None, True
    try:
        call = calls.parse(procfs.text(procfs.read(base + "/syscall")))
    except (OSError, ValueError):
        known = False
        unread.append("syscall")
    return {
        "tid": tid, "comm": comm, "state": fields[0], "flags": int(fields[6]), "cpu_ticks": int(fields[11]) + int(fields[12]),
        "switches": int(status.get("voluntary_ctxt_switches", "0")), "blocked": procfs.signals(status.get("SigBlk", "0")),
        "call": call, "known": known, "wchan": _wchan(base),
    }  # fmt: skip


def main_thread(taken: Optional[Sample]) -> Optional[Thread]:
    """The main thread; the first living one when that has ended before the others."""
    threads = (taken or {}).get("threads") or []
    return next((thread for thread in threads if thread["state"] not in procfs.DEAD), threads[0] if threads else None)


def interpreter(taken: Sample) -> Optional[str]:
    """'python', 'node', …: a program that runs its signal handlers only between its own instructions; None for any other."""
    seen = taken["seen"] or {}
    names = [os.path.basename(taken["exe"] or ""), seen.get("comm") or "", os.path.basename((seen.get("argv") or [""])[0])]
    for name in names[:1] if taken["exe"] else names:
        found = _PROGRAM.match(name)
        if found:
            return found.group(1)
    return "python" if seen and "libpython" in _mapped(seen["pid"]) else None


def _mapped(pid: int) -> str:
    try:
        return procfs.text(procfs.read("/proc/%d/maps" % pid))
    except OSError:
        return ""


def rates(earlier: Optional[Sample], now: Sample) -> Tuple[Optional[float], Optional[float]]:
    """(share of one core, bytes written a second) between two samples; None where it cannot be known."""
    return rate(earlier, now, "cpu_ticks", procfs.TICKS), rate(earlier, now, "written_bytes")


def rate(earlier: Optional[Sample], now: Sample, name: str, unit: float = 1.0) -> Optional[float]:
    """How fast a counter of `usage` grows, in units a second; None where it cannot be known."""
    if earlier is None or not earlier["usage"] or not now["usage"] or now["at"] - earlier["at"] < APART:
        return None
    old, new = earlier["usage"].get(name), now["usage"].get(name)
    return None if old is None or new is None else (new - old) / unit / (now["at"] - earlier["at"])
