"""What a process that is gone has left behind: who lives on, who came again, what is still held, what is half written.

It compares an earlier look with what is there now, and judges nothing.
"""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable, List, Optional, Sequence, Set, Tuple

from . import cgroups, files, procfs, tree
from .evidence import Sample
from .procfs import Seen

SMI = ("nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits")
SMI_WITHIN = 1.0  # seconds: with a sick driver it never ends
Key = Tuple[int, int]


def key(seen: Seen) -> Key:
    """What names a process for good."""
    return seen["pid"], seen["started"]


def survivors(look: Dict[str, Any], mark: Optional[bytes] = None) -> List[Seen]:
    """The living processes of the tree of an earlier look: those that were in it, whatever they started, who is in the session or the
    process group that the main process led, and who has inherited a socket on which it listened. A process of another boot is none.
    """
    main = look["samples"][-1]["seen"]
    known = [one[-1]["seen"] for one in look["kin"] if one[-1]["seen"]]
    pids = [seen["pid"] for seen in known if procfs.same(seen)]
    led = [name for name in ("session", "pgrp") if main and main[name] == main["pid"]]
    if main and main["boot"] == procfs.boot_id():
        for pid in procfs.everyone() if led else ():
            seen = procfs.look(pid)
            if seen and seen["started"] >= main["started"] and any(seen[name] == main["pid"] for name in led):
                pids.append(pid)
        pids += _heirs(look, main)
    without = key(main) if main else None
    return [seen for seen in tree.tree(dict.fromkeys(pids), mark) if key(seen) != without]


def _heirs(look: Dict[str, Any], main: Seen) -> List[int]:
    """Who holds a listening socket of the main process and is younger: it was handed down. One that is older has lent it."""
    inodes = {port["inode"] for port in look["samples"][-1]["ports"]}
    holders = (procfs.glance(pid) for inode in inodes for pid, _, _ in files.holders("socket:[%s]" % inode))
    return [holder.pid for holder in holders if holder is not None and holder.started > main["started"]]


def left(look: Dict[str, Any], alive: Sequence[Seen]) -> Dict[str, Any]:
    """{"stranger", "respawned", "held", "halves", "oom"}: see aftermath.py. alive: the survivors."""
    main: Sample = look["samples"][-1]
    found: Dict[str, Any] = {"stranger": None, "respawned": None, "held": [], "halves": [], "oom": 0}
    stranger = procfs.look(look["pid"])
    if stranger is not None and (key(stranger) != (look["pid"], look["started"]) or stranger["boot"] != look["boot"]):
        found["stranger"] = stranger
    found["respawned"] = _respawned(look, main, {key(seen) for seen in alive}) if main["seen"] else None
    found["held"] = [*_ports(look), *_locks(look), *_gpu(look)]
    found["halves"] = files.halves(look["directories"], look["time"])
    group = main["cgroup"]
    if group and group["oom_kill"] is not None:
        again = dict(group)
        cgroups.again(again)
        found["oom"] = max(0, (again["oom_kill"] or 0) - group["oom_kill"])
    return found


def _respawned(look: Dict[str, Any], main: Sample, without: Set[Key]) -> Optional[Seen]:
    """A process with the same command line, directory and user, which began after the earlier look and was not forked by the old one."""
    was = main["seen"]
    for pid in procfs.everyone():
        now = procfs.glance(pid)
        if now is None or now.started <= was["started"] or now.started < look["ticks"] or now.state in procfs.DEAD:
            continue
        seen = procfs.look(pid)
        if seen is None or key(seen) in without or (seen["argv"], seen["uid"]) != (was["argv"], was["uid"]) or not seen["argv"]:
            continue
        if (
            _directory(pid, main) != main["cwd"]
            or procfs.elsewhere(pid)
            or was["pid"] in (seen["session"], seen["pgrp"])
            or pid == was["pid"]
        ):
            continue
        parent = procfs.look(seen["ppid"])
        how = "same-parent" if seen["ppid"] == was["ppid"] else "supervisor"
        return dict(seen, how=how, by=" ".join(parent["argv"])[:100] if parent else "")
    return None


def _directory(pid: int, main: Sample) -> Optional[str]:
    """Where the process is; where that may not be known, it is taken to be where the old one was."""
    return files.link("/proc/%d/cwd" % pid, [], "cwd") or main["cwd"]


def _all(look: Dict[str, Any]) -> Iterable[Sample]:
    return (one[-1] for one in [look["samples"], *look["kin"]] if one)


def _ports(look: Dict[str, Any]) -> List[Dict[str, Any]]:
    """The ports that the tree listened on and that somebody still listens on, with the holder."""
    ports = {port["port"] for taken in _all(look) for port in taken["ports"]}
    found = []
    for port in files.listening(os.getpid()) if ports else ():
        if port["port"] in ports:
            holder = next(files.holders("socket:[%s]" % port["inode"]), None)
            found.append({"kind": "port", "port": port["port"], "pid": holder[0] if holder else None})
    return found


def _locks(look: Dict[str, Any]) -> List[Dict[str, Any]]:
    """Lock files that name the process that is gone, and locks on its files that another process holds now."""
    stale = [file for file in look["locks"] if not file["path"].endswith(".pid") and files.still(file)]
    found: List[Dict[str, Any]] = [{"kind": "stale-lock", "path": file["path"]} for file in stale]
    now = {ino: pid for ino, pid in locked() if pid != look["pid"]}
    for taken in _all(look):
        for file in taken["files"]:
            if file["ino"] in look["locked"] and file["ino"] in now and files.still(file):
                found.append({"kind": "lock", "path": file["path"], "pid": now[file["ino"]]})
    return list({one["path"]: one for one in found}.values())


def locked() -> List[Tuple[int, int]]:
    """(inode, pid) of every file lock. Source: proc_locks(5)."""
    try:
        lines = procfs.text(procfs.read("/proc/locks")).splitlines()
    except OSError:
        return []
    words = ([word for word in line.split() if word != "->"] for line in lines)
    return [(int(word[5].rpartition(":")[2]), int(word[4])) for word in words if len(word) > 5]


def _gpu(look: Dict[str, Any]) -> List[Dict[str, Any]]:
    """Memory that the driver still counts for the processes of the tree. Source: nvidia-smi --help-query-compute-apps."""
    if not any(taken["gpu"] for taken in _all(look)):
        return []
    from . import bounded

    pids = {pid for taken in _all(look) for pid in taken["nspid"]}
    raw = bounded.output(SMI, SMI_WITHIN) or b""
    rows = (line.split(",") for line in procfs.text(raw).splitlines())
    mine = [row for row in rows if len(row) == 2 and row[0].strip().isdigit() and int(row[0]) in pids]
    return [{"kind": "gpu", "pid": int(row[0]), "mib": row[1].strip()} for row in mine]
