"""Rules for a process that the kernel holds, or whose signal has not arrived: dead, dying, frozen, stopped, deep in a call, deaf."""

from __future__ import annotations

import os
from typing import Dict, List, Optional, Tuple

from . import calls, evidence, files, hearing, host, procfs
from .case import Case, Finding, finding

IDLE = 0.01  # of a core: less is nothing
STARVED = 0.2  # of a core: less is too little for a program that wants to run
# What the words of a stack or a wait channel say about how KILL fares there; what is not named is not known.
KILLABLE = ("rpc_wait_bit_killable", "folio_wait", "wait_on_page", "lock_page")


def final(case: Case) -> Optional[Finding]:
    """Dead or dying: its masks and its pending signals mean nothing any more."""
    return _zombie(case) or _exiting(case)


def holding(case: Case) -> List[Finding]:
    """Everything that keeps a signal from a living process, in the order of the questions."""
    rules = (_no_permission, _frozen, _stopped, _traced, _uninterruptible, _not_heard, _queued, _deaf_to_the_polite_ones)
    return [found for found in (rule(case) for rule in rules) if found is not None]


def _zombie(case: Case) -> Optional[Finding]:
    if case.seen["state"] not in procfs.DEAD:
        return None
    parent = case.seen["ppid"]
    shown = procfs.look(parent)
    facts = ["its parent: pid %d %s %s" % (parent, shown["state"], " ".join(shown["argv"])[:100])] if shown else []
    return finding(("zombie", "parent"), "proven", "restart-container" if parent == 1 else "none", True, facts)


def _exiting(case: Case) -> Optional[Finding]:
    """PF_EXITING in every thread, or a core that is being written: it has its signal, and the kernel has not finished with it."""
    now, lately = case.main.now, case.main.lately
    dying = bool(now["threads"]) and (all(thread["flags"] & evidence.EXITING for thread in now["threads"]) or _left_behind(case))
    if not (dying or now["dumping"]):
        return None
    if now["dumping"]:
        return finding(("exiting-stuck", "core-dump"), "proven", "wait", True, ["CoreDumping: 1"])
    cpu = case.cpu()
    stuck = lately is not None and bool(lately["flags"] & evidence.EXITING or _left_behind(case)) and (cpu is None or cpu <= IDLE)
    held = next((thread for thread in now["threads"] if thread["state"] == "D"), None) or case.thread
    facts = ["flags: PF_EXITING%s" % (" PF_SIGNALED" if now["flags"] & evidence.SIGNALED else "")]
    facts += ["thread %d waits in: %s" % (held["tid"], held["wchan"])] if held and held["wchan"] else []
    facts += _stack(case, held) if held else []
    facts += _open_mounts(case) if held and calls.channel(held["wchan"]) in ("fuse", "nfs") else []
    if not stuck:
        return finding(("shutdown-progressing", "exiting"), "strong", "wait", True, facts)
    leader = case.thread is not None and now["threads"][0]["state"] in procfs.DEAD
    return finding(("exiting-stuck", "thread" if leader else "close"), "proven", "fix-filesystem", True, facts)


def _left_behind(case: Case) -> bool:
    """Whether the main thread has died of a signal for all of them, and another thread cannot, since the kernel holds it.

    A main thread that has only left early carries no such flag: its process lives.
    """
    leader, *others = case.main.now["threads"]
    killed = leader["flags"] & evidence.SIGNALED or "KILL" in case.seen["pending"]
    return leader["state"] in procfs.DEAD and bool(killed) and any(thread["state"] == "D" for thread in others)


def _no_permission(case: Case) -> Optional[Finding]:
    found = hearing.forbidden(case.seen)
    return found and finding(found, "proven", "none", True, ["user: %d, ours %d" % (case.seen["uid"], os.geteuid())])


def _frozen(case: Case) -> Optional[Finding]:
    how = (case.main.now["cgroup"] or {}).get("frozen")
    if not how:
        return None
    place = case.main.now["cgroup"]["paths"].get("freezer" if how == "v1" else "unified", "")
    return finding(("frozen", "cgroup-%s" % how), "proven", "thaw", how == "v1", ["frozen: %s" % place])


def _stopped(case: Case) -> Optional[Finding]:
    found = hearing.held(case.seen, case.signal or "INT")
    if found is None and case.seen["state"] in ("T", "t"):
        found = ("suspended", "stop-signal")
    return found and finding(found, "proven", "cont" if found[0] == "suspended" else "end-tracer", False)


def _traced(case: Case) -> Optional[Finding]:
    """A tracer that lets it run may still eat its signals."""
    if not case.seen["traced"] or case.seen["state"] in ("t", "T"):
        return None
    return finding(("traced", "runs"), "hint" if case.signal is None else "strong", "end-tracer", False, aside=case.signal is None)


def _uninterruptible(case: Case) -> Optional[Finding]:
    """D twice without work between, or a wait for FUSE that a signal would turn into one. One D alone is everyday (fsync)."""
    threads = [evidence.main_thread(taken) for taken in (case.main.lately, case.main.now) if taken and taken["seen"]]
    cpu, written = evidence.rates(case.main.lately, case.main.now)
    if len(threads) < 2 or cpu is None or cpu > IDLE or written or not all(threads):
        return None
    old, new = threads[0], threads[1]
    assert old is not None and new is not None
    still = old["switches"] == new["switches"] and old["call"] == new["call"]
    fuse = calls.channel(new["wchan"]) == "fuse"
    deep = [thread["state"] for thread in (old, new)] == ["D", "D"]
    if not still or not (deep or fuse):
        return None
    vfork = calls.channel(new["wchan"]) == "vfork"
    facts = (
        _waits_for(case, new["call"]) if not vfork else ["child: pid %d" % one.now["seen"]["pid"] for one in case.kin if one.now["seen"]]
    )
    facts += _stack(case, new)
    helps = "signal:KILL" if vfork else "fix-filesystem"
    return finding(("uninterruptible", "vfork" if vfork else "io"), "proven" if deep else "strong", helps, _kill(case, new, vfork), facts)


def _open_mounts(case: Case) -> List[str]:
    """The mounts, no disk's, of the files that a dying process had open; its own are gone, and it shares ours at most."""
    mounts = (files.mount_of(os.getpid(), path) for path in (case.before or case.main.now)["fds"].values() if path.startswith("/"))
    return [fact for mount in mounts if mount and mount["kind"].startswith(("fuse", "nfs")) for fact in _mount_facts(mount)]


def _mount_facts(mount: files.Facts) -> List[str]:
    facts = ["mount: %(point)s, %(kind)s from %(source)s" % mount]
    return facts + (["fuse connection: %s" % mount["connection"]] if mount["kind"].startswith("fuse") else [])


def _stack(case: Case, thread: evidence.Thread) -> List[str]:
    unread: List[str] = []
    frames = host.stack(case.seen["pid"], thread["tid"], unread)
    case.main.now["unreadable"].extend(unread)
    return ["kernel stack: %s" % " < ".join(frames[:8])] if frames else []


def _kill(case: Case, thread: evidence.Thread, vfork: bool) -> "bool | str":
    """Whether KILL is known to be in vain: it waits already, and nothing came of it."""
    if "KILL" in case.seen["pending"] or case.signal == "KILL":
        return True
    return False if vfork or any(word in (thread["wchan"] or "") for word in KILLABLE) else "unknown"


def _waits_for(case: Case, call: Optional[calls.Call]) -> List[str]:
    """The path that the call is about, and the mount that it lies on."""
    path = _path(case, call)
    mount = files.mount_of(case.seen["pid"], path) if path else None
    return (["waits for: %s" % path] if path else []) + (_mount_facts(mount) if mount is not None else [])


def _path(case: Case, call: Optional[calls.Call]) -> Optional[str]:
    """A path that is named by an argument of the call, or the file behind a descriptor that is one."""
    if call is None or call["nr"] < 0:
        return None
    for word in call["args"][:2]:
        path = _text_at(case.seen["pid"], word)
        if path:
            return os.path.normpath(os.path.join(case.main.now["cwd"] or "/", path))
    return case.main.now["fds"].get(str(call["args"][0])) if call["args"] else None


def _text_at(pid: int, address: int) -> Optional[str]:
    """The path at an address of the process; reading its memory neither stops it nor attaches to it. Source: proc_pid_mem(5)."""
    if address < 1 << 16:
        return None
    raw = procfs.memory(pid, address, min(4096, 4096 - address % 4096 + 4096)).split(b"\0")[0]
    path = procfs.text(raw)
    return path if 1 < len(path) < 1024 and "/" in path and path.isprintable() else None


def _not_heard(case: Case) -> Optional[Finding]:
    """The last signal is ignored, or waits where nobody takes it; not the first thing to say while an earlier one has been taken."""
    signal = case.signal or next((name for name in case.seen["pending"] if name in case.seen["blocked"]), None)
    if signal is None:
        return None
    seen = case.before["seen"] if case.before and case.before["seen"] else case.seen
    found = hearing.unheard(case.seen, signal)
    if found is None or (signal in seen["caught"] and found[0] == "signal-ignored"):  # it took it, and wants no second one
        return None
    useless = case.seen["pid1"] and case.seen["pid"] == 1
    facts = ["%s: %s" % (signal, found[0][7:])] + (["pending: %s" % " ".join(case.seen["pending"])] if case.seen["pending"] else [])
    return finding(found, "proven", hearing.better(case.seen), useless, facts, aside=bool(case.heard()))


def _queued(case: Case) -> Optional[Finding]:
    """A signal that nothing keeps away, and that has not been taken: the process gets no time to run in."""
    seen, now, lately = case.seen, case.main.now, case.main.lately
    waiting = [name for name in seen["pending"] if name not in seen["blocked"]]
    held, old = (now["cgroup"] or {}).get("throttled"), ((lately or {}).get("cgroup") or {}).get("throttled")
    more = held - old if held is not None and old is not None else 0
    cpu = case.cpu()
    starved = bool(more and case.heard() and cpu is not None and cpu < STARVED)
    if seen["state"] != "R" or not (waiting or starved):
        return None
    facts = ["pending: %s" % " ".join(waiting)] if waiting else []
    facts += ["throttled: %d times more" % more] if more else []
    return finding(("shutdown-pending", "cpu-starved"), "proven" if more else "strong", "wait", False, facts)


def _deaf_to_the_polite_ones(case: Case) -> Optional[Finding]:
    """Nothing was sent, and the first signal that one would send is in vain: worth knowing before."""
    if case.signal is not None:
        return None
    deaf: Dict[str, Tuple[str, str]] = {}
    for name in hearing.POLITE:
        found = hearing.unheard(case.seen, name)
        if found is not None:
            deaf[name] = found
    if not deaf:
        return None
    facts = ["%s: %s, %s" % (name, found[0], found[1]) for name, found in deaf.items()]
    return finding(next(iter(deaf.values())), "proven", hearing.better(case.seen), False, facts, aside=True)
