"""Conditions of a check that look at what the workload's processes hold: a port that one of them listens on, a GPU."""

from __future__ import annotations

import os
from typing import Any, Iterator, List, Set

from . import procfs, tree
from .condition import Condition

LISTENS = "0A"  # Source: proc_pid_net(5), include/net/tcp_states.h
GPU = "/dev/nvidia"


def descriptors(pid: int) -> Iterator[str]:
    """What the descriptors of a process lead to; nothing for one that may not be seen."""
    try:
        names = os.listdir("/proc/%d/fd" % pid)
    except OSError:
        return
    for name in names:
        try:
            yield os.readlink("/proc/%d/fd/%s" % (pid, name))
        except OSError:
            continue


def listeners(pid: int, port: int) -> Set[str]:
    """The sockets ("socket:[…]") that listen on a TCP port in the network of the process."""
    found = set()
    for table in ("tcp", "tcp6"):
        try:
            rows = procfs.text(procfs.read("/proc/%d/net/%s" % (pid, table))).splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, rows):
            if fields[3] == LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                found.add("socket:[%s]" % fields[9])
    return found


class _Holding(Condition):
    """What both have: the processes of the workload, looked at now and then."""

    pace = 0.5

    def __init__(self, job: Any, name: str, seen: str) -> None:
        super().__init__(name, seen)
        self.job = job

    def pids(self) -> List[int]:
        """The processes of what was launched."""
        return [seen["pid"] for seen in tree.tree([self.job.launched["pid"]], self.job.mark)]


class Port(_Holding):
    """Passes when a process of the workload listens on the TCP port. Nothing is connected: the program sees no stranger."""

    def __init__(self, job: Any, port: int) -> None:
        super().__init__(job, "port %d" % port, "nothing of the workload listens on port %d" % port)
        self.port = port

    def look(self, left: float) -> None:
        """Compares the listening sockets with the descriptors of the workload, then with those of everybody."""
        sockets = listeners(self.job.launched["pid"], self.port)
        self.met = bool(sockets) and any(sockets.intersection(descriptors(pid)) for pid in self.pids())
        if self.met:
            self.seen = "port %d is listened on" % self.port
            return
        self.seen = "nothing of the workload listens on port %d" % self.port
        if sockets:
            holder = next((pid for pid in procfs.everyone() if sockets.intersection(descriptors(pid))), None)
            glance = procfs.glance(holder) if holder is not None else None
            who = "pid %d (%s)" % (glance.pid, glance.comm) if glance is not None else "somebody else"
            self.seen += ", %s does" % who


class Gpu(_Holding):
    """Passes when a process of the workload has a device file of an NVIDIA driver open or mapped."""

    def __init__(self, job: Any) -> None:
        super().__init__(job, "gpu", "no process of the workload holds a GPU")

    def look(self, left: float) -> None:
        """Looks at descriptors, then at mappings."""
        self.met = any(_holds_gpu(pid) for pid in self.pids())
        self.seen = "a GPU is held" if self.met else "no process of the workload holds a GPU (%s*)" % GPU


def _holds_gpu(pid: int) -> bool:
    if any(path.startswith(GPU) for path in descriptors(pid)):
        return True
    try:
        return any(b" " + GPU.encode() in line for line in procfs.read("/proc/%d/maps" % pid).splitlines())
    except OSError:
        return False
