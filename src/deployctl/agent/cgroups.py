"""What the control groups of a process say: whether they are frozen, killed for memory, held back from the CPU. v1 and v2."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Tuple

from . import procfs

Group = Dict[str, Any]


def look(pid: int) -> Group:
    """{"frozen" ("v1", "v2" or null), "oom_kill", "throttled" (counters or null), "paths", "unreadable"} of the process.

    Source: proc_pid_cgroup(5), the kernel's cgroup-v1/freezer-subsystem and cgroup-v2.
    """
    group: Group = {"frozen": None, "oom_kill": None, "throttled": None, "paths": {}, "unreadable": []}
    try:
        lines = procfs.text(procfs.read("/proc/%d/cgroup" % pid)).splitlines()
        mounts = _mounts()
    except OSError:
        return dict(group, unreadable=["cgroup"])
    for line in lines:
        _, names, path = line.split(":", 2)
        for kind in names.split(",") if names else ["unified"]:
            place = _place(mounts, kind, path)
            if place is not None:
                group["paths"][kind] = place
            elif kind in ("freezer", "unified"):
                group["unreadable"].append("cgroup:%s" % kind)
    again(group)
    return group


def again(group: Group) -> None:
    """Reads the same groups anew: their counters stay when the process has ended."""
    paths = group["paths"]
    state = _word(paths.get("freezer"), "freezer.state")
    events = _pairs(paths.get("unified"), "cgroup.events")
    group["frozen"] = "v1" if state not in (None, "THAWED") else "v2" if events.get("frozen") else None
    counted = [
        _pairs(paths.get("memory"), "memory.oom_control").get("oom_kill"),
        _pairs(paths.get("unified"), "memory.events").get("oom_kill"),
    ]
    group["oom_kill"] = next((number for number in counted if number is not None), None)
    limits = {**_pairs(paths.get("unified"), "cpu.stat"), **_pairs(paths.get("cpu"), "cpu.stat")}
    group["throttled"] = limits.get("nr_throttled")


def _mounts() -> List[Tuple[str, str, str]]:
    """(controller or "unified", root of the mount, mount point) as this process sees them. Source: proc_pid_mountinfo(5)."""
    found = []
    for line in procfs.text(procfs.read("/proc/self/mountinfo")).splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(), right.split()
        if kind[0] == "cgroup2":
            found.append(("unified", fields[3], fields[4]))
        elif kind[0] == "cgroup":
            found += [(word, fields[3], fields[4]) for word in kind[2].split(",")]
    return found


def _place(mounts: List[Tuple[str, str, str]], kind: str, path: str) -> Optional[str]:
    """The directory of a group; None where it lies above what is mounted here."""
    for word, root, point in mounts:
        if word == kind and not path.startswith("/.."):
            inside = path[len(root) :] if root != "/" and path.startswith(root) else path
            place = os.path.normpath(point + "/" + inside)
            if os.path.isdir(place):
                return place
    return None


def _word(place: Optional[str], name: str) -> Optional[str]:
    try:
        return procfs.text(procfs.read("%s/%s" % (place, name))).strip() if place else None
    except OSError:
        return None


def _pairs(place: Optional[str], name: str) -> Dict[str, int]:
    """The lines `name number` of a file; nothing when it cannot be read."""
    pairs = (line.split() for line in (_word(place, name) or "").splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}
