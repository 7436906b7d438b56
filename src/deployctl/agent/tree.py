"""Which processes are the workload: the one that was recorded, those that match, their descendants, and who carries the mark.

A session or process group belongs to it only when its leader does: otherwise strangers live in it. Cgroups say nothing here.
"""

from __future__ import annotations

import os
from typing import Any, Collection, Dict, Iterable, List, NamedTuple, Optional, Set

from . import environment, match, procfs
from .faults import Refused
from .procfs import Glance, Seen

PASSES = 10  # readings of /proc until two agree; a tree that forks faster than that is taken as it was last
ELASTIC = "TORCHELASTIC_RUN_ID"  # what torchrun's agent puts into the environment of its ranks
Table = Dict[int, Glance]


class Found(NamedTuple):
    """The workload as it runs: its top process, how it was known ("record" or "match"), and all that were known, the top first."""

    top: Optional[Seen]
    how: Optional[str]
    members: List[Seen]


def find(workload: Dict[str, Any], record: Optional[Dict[str, Any]], mark: Optional[bytes] = None) -> Found:
    """The one line of descent that is the workload; top is None when it does not run.

    workload: match (and name, for the words of an error). record: pid, started, boot of what was launched last. Several lines that all
    carry the mark (NAME=value in their environment) are what is left of one workload: how is then "mark", top the oldest of them.
    Raises Refused when two lines that do not meet are found: nothing can say which of them is meant.
    """
    for _ in range(3):  # what is seen in the moment between a fork and an exit is looked at again
        table = _everyone()
        recorded = _recorded(record, table)
        known = _matching(match.form(workload["match"]), table) | ({recorded} if recorded is not None else set())
        known |= {agent for agent in (_agent_of(pid, table) for pid in known) if agent is not None}
        tops = {_top(pid, table, known) for pid in known}
        members = _looks(sorted(known, key=lambda pid: (pid not in tops, table[pid].started, pid)), table)
        alive = [seen for seen in members if seen["pid"] in tops]
        if not known:
            return Found(None, None, [])
        if len(alive) == 1:
            return Found(alive[0], "record" if recorded is not None else "match", members)
        if len(alive) > 1 and mark is not None and all(procfs.carries(seen["pid"], mark) for seen in alive):
            return Found(alive[0], "mark", members)
    if len(alive) > 1:
        raise _several(workload, alive)
    return Found(None, None, [])


def no_twin(workload: Dict[str, Any]) -> None:
    """Raises Refused for a process in the workload's directory with the script of its command, which its `match`, another text, misses.

    A match by words or by a pattern may pass it over on purpose: such a one tells runs of one script apart.
    """
    script, text = match.script(workload.get("command") or ()), match.form(workload["match"]).get("text")
    if script is None or text is None or text == script:
        return
    twins = _matching({"text": script, "directory": workload["directory"]}, _everyone())
    if twins:
        raise Refused(
            "pid %d runs the script of '%s' in its directory, and `match` does not find it" % (min(twins), workload["name"]),
            where="match: %s" % match.shown(workload["match"]), todo="correct `match` (without one it is the script), or end that process",
        )  # fmt: skip


def tree(tops: Iterable[int], mark: Optional[bytes] = None, leaders: Collection[int] = ()) -> List[Seen]:
    """The living processes of the workload: the tops, their descendants, whoever carries the mark, and the sessions and process groups that
    one of them leads; those nearest the top first.

    mark: an entry of the environment, NAME=value. leaders: pids that were of the workload when they lived; a pid is not given anew while
    a session or group has its number. Our own process and those that it descends from are never among them.
    """
    tops, before = list(tops), None
    for _ in range(PASSES):
        table = _everyone()
        now = _family(tops, mark, table, leaders)
        if now == before:
            break
        before = now
    return _looks([glance.pid for glance in now], table)


def _everyone() -> Table:
    """Every living process at a glance."""
    glances = (procfs.glance(pid) for pid in procfs.everyone())
    return {glance.pid: glance for glance in glances if glance is not None and glance.state not in procfs.DEAD}


def _looks(pids: Iterable[int], table: Table) -> List[Seen]:
    """A full look at those that are still the processes of the table."""
    looks = ((table[pid], procfs.look(pid)) for pid in pids)
    return [seen for glance, seen in looks if seen is not None and seen["started"] == glance.started and seen["state"] not in procfs.DEAD]


def _recorded(record: Optional[Dict[str, Any]], table: Table) -> Optional[int]:
    """The pid of the record, if that very process lives."""
    if record is None or record.get("started") is None or record.get("boot") != procfs.boot_id():
        return None
    pid: int = record["pid"]
    if pid in table:
        return pid if table[pid].started == record["started"] else None
    if procfs.hidden(pid):
        raise Refused("process %d of the record cannot be seen (/proc is mounted with hidepid)" % pid, todo="run deployctl as root")
    return None


def _matching(wanted: Dict[str, Any], table: Table) -> Set[int]:
    ours = _ours(table)
    return {glance.pid for glance in table.values() if glance.pid not in ours and _matches(wanted, glance)}


def _matches(wanted: Dict[str, Any], glance: Glance) -> bool:
    try:
        if not match.fits(wanted, procfs.argv_of(glance.pid), glance.comm) or procfs.elsewhere(glance.pid):
            return False
        return _meets(wanted, glance.pid)
    except OSError:
        return False


def _agent_of(pid: int, table: Table) -> Optional[int]:
    """The launcher that gave a process its rank; None for one that is no rank. Several ranks are one workload, that of their launcher."""
    if not _is_rank(pid):
        return None
    return next((above for above in _ancestors(pid, table) if not _is_rank(above)), None)


def _is_rank(pid: int) -> bool:
    return ELASTIC in (procfs.environment(pid) or {})


def _meets(wanted: Dict[str, Any], pid: int) -> bool:
    """Whether the process is in the wanted directory and of the wanted user. What may not be read is not known to be another."""
    if wanted.get("user") and os.stat("/proc/%d" % pid).st_uid != environment.uid_of(wanted["user"]):
        return False
    if not wanted.get("directory"):
        return True
    try:
        here, there = os.stat("/proc/%d/cwd" % pid), os.stat(wanted["directory"])
    except PermissionError:
        return True
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


def _ours(table: Table) -> Set[int]:
    """This process and those that it descends from; not the first process of all, which may be the workload of a container."""
    return ({os.getpid()} | set(_ancestors(os.getpid(), table))) - {1}


def _ancestors(pid: int, table: Table) -> List[int]:
    """From the parent upwards."""
    chain: List[int] = []
    while pid in table and table[pid].ppid in table and table[pid].ppid not in chain:
        pid = table[pid].ppid
        chain.append(pid)
    return chain


def _top(pid: int, table: Table, known: Collection[int]) -> int:
    """The highest of the process and its ancestors that is known, whatever stands between."""
    return [other for other in [pid, *_ancestors(pid, table)] if other in known][-1]


def _family(tops: Iterable[int], mark: Optional[bytes], table: Table, leaders: Collection[int]) -> List[Glance]:
    """Breadth first, so that a parent stands before its children."""
    ours = _ours(table)
    children: Dict[int, List[int]] = {}
    for glance in table.values():
        children.setdefault(glance.ppid, []).append(glance.pid)
    family = _descend([pid for pid in tops if pid in table], children, ours)
    others = [pid for pid in table if pid not in family and pid not in ours]
    if mark is not None:
        marked = [pid for pid in others if procfs.carries(pid, mark) and not procfs.elsewhere(pid)]
        heads = [pid for pid in marked if table[pid].ppid not in marked]
        family += [pid for pid in _descend(heads, children, ours) if pid not in family]
    while True:
        led = {*leaders, *family} - ours - {1}
        heads = [pid for pid in others if pid not in family and {table[pid].session, table[pid].pgrp} & led]
        if not heads:
            return [table[pid] for pid in family]
        family += [pid for pid in _descend(heads, children, ours) if pid not in family]


def _descend(pids: List[int], children: Dict[int, List[int]], without: Set[int]) -> List[int]:
    family = [pid for pid in dict.fromkeys(pids) if pid not in without]
    reached = set(family) | without
    for pid in family:  # grows while it is read
        new = [child for child in children.get(pid, ()) if child not in reached]
        reached.update(new)
        family += new
    return family


def _several(workload: Dict[str, Any], tops: List[Seen]) -> Refused:
    processes = [{"pid": seen["pid"], "since": seen["since"], "argv": seen["argv"]} for seen in tops]
    pids = ", ".join(str(seen["pid"]) for seen in tops)
    return Refused(
        "%d processes that do not belong together could be '%s': pid %s" % (len(tops), workload.get("name") or "it", pids),
        where="match: %s" % match.shown(workload["match"]), todo="end those that are not meant, or give a narrower `match`",
        processes=processes,
    )  # fmt: skip
