"""host: what only the host of a container sees of it. Run on the host, before anything enters the container, since whoever enters a frozen
one is frozen too. It reads; it changes nothing. What may not be read is named.
"""

from __future__ import annotations

import os
import re
from typing import Any, Dict, List, Optional

from . import bounded, cgroups, procfs

TOOL = 3.0  # seconds that a tool of the host may take
LAST = 12  # lines of the kernel's log that are kept
FUSE = "/sys/fs/fuse/connections"
TOLD = re.compile(r"NVRM: Xid|blocked for more than|hung_task|Out of memory|oom-kill|oom_reaper|Killed process|I/O error|not responding")
Facts = Dict[str, Any]


def host(session: Any, request: Dict[str, Any]) -> Facts:
    """{"init", "frozen", "process", "log", "fuse", "unreadable"} of the container `ct`.

    request: ct; pid and started of a process of the container, as its own pid namespace numbers it (or neither). init is the host's pid of
    its first process; frozen "v1", "v2" or null; process {"pid" (the host's), "state", "stack" (the innermost first), "wchan"} or null.
    """
    unread: List[str] = []
    init = _init(request["ct"], unread)
    group = cgroups.look(init) if init is not None else None
    unread += group["unreadable"] if group else []
    named = request.get("pid") if init is not None else None
    return {
        "init": init, "frozen": group["frozen"] if group else None, "group": _group(group),
        "process": _process(init, named, request.get("started"), unread) if init is not None and named is not None else None,
        "log": _log(unread) if request.get("more") else [], "fuse": _fuse(unread) if request.get("more") else [], "unreadable": unread,
    }  # fmt: skip


def _init(ct: int, unread: List[str]) -> Optional[int]:
    """The host's pid of the container's first process: what LXC says, else what hangs in the container's cgroup and leads a namespace."""
    said = (bounded.output(["lxc-info", "-n", str(ct), "-pH"], TOOL) or b"").strip()
    if said.isdigit():
        return int(said)
    name = re.compile(r"/(lxc|lxc\.payload)[/.]%d(/|$)" % ct, re.MULTILINE)
    for pid in procfs.everyone():
        try:
            inside = name.search(procfs.text(procfs.read("/proc/%d/cgroup" % pid)))
            if inside and procfs.status_of("/proc/%d/status" % pid).get("NSpid", "").split()[-1:] == ["1"]:
                return pid
        except OSError:
            continue
    unread.append("init of %d" % ct)
    return None


def _group(group: Optional[Facts]) -> Optional[str]:
    if group is None:
        return None
    place: Optional[str] = group["paths"].get("freezer" if group["frozen"] == "v1" else "unified")
    return place


def _process(init: int, pid: int, started: Optional[int], unread: List[str]) -> Optional[Facts]:
    """The process of the container's pid namespace that has that pid there."""
    space = _namespace(init)
    for other in procfs.everyone():
        try:
            numbers = procfs.status_of("/proc/%d/status" % other).get("NSpid", "").split()
        except OSError:
            continue
        if len(numbers) > 1 and numbers[-1] == str(pid) and _namespace(other) == space:
            now = procfs.glance(other)
            if now is not None and started in (None, now.started):
                return {"pid": other, "state": now.state, "stack": stack(other, other, unread)}
    unread.append("host pid")
    return None


def _namespace(pid: int) -> Optional[str]:
    try:
        return os.readlink("/proc/%d/ns/pid" % pid)
    except OSError:
        return None


def stack(pid: int, tid: int, unread: List[str]) -> List[str]:
    """The functions of the kernel that a thread is in, the innermost first; for root of the host alone. Source: proc_pid_stack(5)."""
    try:
        lines = procfs.text(procfs.read("/proc/%d/task/%d/stack" % (pid, tid))).splitlines()
    except OSError:
        unread.append("stack")
        return []
    return [line.split()[-1].split("+")[0] for line in lines if line.strip()]


def _log(unread: List[str]) -> List[str]:
    """The newest lines of the kernel's log about a GPU's fault, a hung task, the end of memory, or a disk; pids in them are the host's."""
    try:
        handle = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        unread.append("kernel log")
        return []
    lines: List[str] = []
    try:
        while True:
            try:
                record = procfs.text(os.read(handle, 1 << 13))
            except BrokenPipeError:  # overwritten meanwhile
                continue
            head, _, text = record.partition(";")
            if TOLD.search(text):
                lines.append("%.0f %s" % (int(head.split(",")[2]) / 1e6, text.splitlines()[0][:200]))
    except (BlockingIOError, ValueError, IndexError):
        pass
    except OSError:
        unread.append("kernel log")
    finally:
        os.close(handle)
    return lines[-LAST:]


def _fuse(unread: List[str]) -> List[Facts]:
    """{"connection", "waiting"} of the FUSE connections that have requests without an answer. Source: the kernel's filesystems/fuse."""
    try:
        names = sorted(os.listdir(FUSE), key=int)
    except (OSError, ValueError):
        unread.append("fuse connections")
        return []
    found = []
    for name in names:
        try:
            waiting = int(procfs.read("%s/%s/waiting" % (FUSE, name)))
        except (OSError, ValueError):
            continue
        if waiting:
            found.append({"connection": name, "waiting": waiting})
    return found
