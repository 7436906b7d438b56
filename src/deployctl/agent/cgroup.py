"""The memory of a process's cgroup: where the kernel counts whom it killed for it. Both versions of cgroups."""

from __future__ import annotations

import os
from typing import Optional, Tuple

from . import procfs


def kill_counter(pid: int) -> Optional[str]:
    """The file with the line `oom_kill N` of the cgroup of a process; None where there is none to be seen.

    Source: cgroups(7); the kernel's cgroup-v2 (memory.events) and cgroup-v1/memory (memory.oom_control).
    """
    try:
        whole = procfs.text(procfs.read("/proc/%d/cgroup" % pid))
    except OSError:
        return None
    places = {}
    for line in whole.splitlines():
        _, controllers, path = line.split(":", 2)
        places["memory" if "memory" in controllers.split(",") else controllers] = path
    for controllers, kind, name in (("memory", "cgroup", "memory.oom_control"), ("", "cgroup2", "memory.events")):
        mounted = _mounted(kind, controllers) if controllers in places else None
        if mounted is not None:
            root, point = mounted
            below = os.path.relpath(places[controllers], root)
            path = os.path.normpath(os.path.join(point, below, name))
            if not below.startswith("..") and os.access(path, os.R_OK):
                return path
    return None


def _mounted(kind: str, option: str) -> Optional[Tuple[str, str]]:
    """(root, mount point) of a hierarchy of cgroups. Source: proc_pid_mountinfo(5)."""
    for line in procfs.text(procfs.read("/proc/self/mountinfo")).splitlines():
        head, _, rest = line.partition(" - ")
        fields, more = head.split(), rest.split()
        if more[0] == kind and (not option or option in more[2].split(",")):
            return fields[3], fields[4]
    return None


def in_container() -> bool:
    """Whether the first process was told that it is in a container. Source: systemd's CONTAINER_INTERFACE."""
    return "container" in (procfs.environment(1) or {})
