"""Rules about a wait whose end is in somebody else's hands: a reader of its output, a child, another thread of its own."""

from __future__ import annotations

from typing import Optional

from . import calls, evidence, files, hearing, match, mutexes, procfs
from .case import Case, Finding, Watched, finding
from .progress import QUIET


def output_blocked(case: Case) -> Optional[Finding]:
    """A write that stays where it is: to a pipe that is full, a stopped terminal, a socket whose other end does not read."""
    now, old = case.thread, evidence.main_thread(case.main.lately)
    if (
        now is None
        or old is None
        or calls.family(now) not in calls.WRITE
        or now["switches"] != old["switches"]
        or case.rate("written_bytes")
    ):
        return None
    if calls.channel(now["wchan"]) != "write" and not (now["call"] and calls.same([old["call"], now["call"]])):
        return None
    target = case.main.now["fds"].get(str(now["call"]["args"][0]), "") if now["call"] else ""
    if target.startswith("/") and not target.startswith(("/dev/pts/", "/dev/tty")):
        return None
    kind = (
        "pipe-full"
        if target.startswith("pipe:") or "pipe" in (now["wchan"] or "")
        else "terminal"
        if target.startswith("/dev/")
        else "socket"
    )
    facts = ["writes to: descriptor %d, %s" % (now["call"]["args"][0], target)] if now["call"] else []
    readers = files.readers(target, case.seen["pid"]) if target.startswith("pipe:") else []
    for pid in readers:
        seen = procfs.look(pid)
        facts += ["its reader: pid %d %s %s" % (pid, seen["state"], " ".join(seen["argv"])[:80])] if seen else []
    facts += ["its reader: none that can be seen"] if target.startswith("pipe:") and not readers else []
    return finding(("output-blocked", kind), "proven" if now["call"] and kind == "pipe-full" else "strong", "none", False, facts)


def waits_for_child(case: Case) -> Optional[Finding]:
    """The main thread waits in wait4 or waitid. Did it so before the signal too, it is a wrapper, which keeps the signal to itself."""
    if not _in_wait(case):
        return None
    elsewhere = case.moved() if case.before else case.by_default()  # the interrupt would have left the wait that was there before
    return awaited(case, "proven" if case.before else "strong") if elsewhere else wrapper(case)


def wrapper(case: Case) -> Optional[Finding]:
    """It waits for its child all the time: a shell, a launcher."""
    return wrapper_of(case, "proven" if case.before else "strong") if _in_wait(case) else None


def _in_wait(case: Case) -> bool:
    if case.thread is None or not case.kin:
        return False
    shell = match.is_shell(case.seen["argv"], case.seen["comm"])  # whose `wait` sleeps until a signal comes
    return calls.family(case.thread) in calls.CHILD or (shell and calls.family(case.thread) == "rt_sigsuspend")


def awaited(case: Case, sure: str) -> Optional[Finding]:
    """It is stopping, and waits for the child that the call names, or its first one."""
    child = _child(case)
    if child is None:
        return None
    return finding(("waiting-for-child", _child_detail(case, child)), sure, child_next(case), False, [_shown(child, "child")])


def wrapper_of(case: Case, sure: str) -> Optional[Finding]:
    """It does nothing but wait for what it has started."""
    child = _deepest(case)
    if child is None or child.now["seen"] is None:
        return None
    kind = "shell" if match.is_shell(case.seen["argv"], case.seen["comm"]) else "launcher"
    return finding(("wrapper-not-forwarding", kind), sure, "signal-child:%d" % child.now["seen"]["pid"], False, [_shown(child, "works")])


def wrapper_by_work(case: Case) -> Optional[Finding]:
    """It rests in a call of another kind (uv, a launcher's event loop) while what it started works on."""
    cpu = case.cpu()
    working = [one for one in case.kin if (evidence.rate(one.lately, one.now, "cpu_ticks", procfs.TICKS) or 0.0) >= QUIET]
    if not working or cpu is None or cpu >= QUIET:
        return None
    pid = working[0].now["seen"]["pid"]
    return finding(("wrapper-not-forwarding", "launcher"), "hint", "signal-child:%d" % pid, False, [_shown(working[0], "works")])


def _child(case: Case) -> Optional[Watched]:
    """The child that is waited for, where the call names it; else the first living one."""
    own = [one for one in case.kin if one.now["seen"] and one.now["seen"]["ppid"] == case.seen["pid"]]
    call = case.thread["call"] if case.thread else None
    named = call["args"][:2] if call else []
    first = own[0] if own else case.kin[0] if case.kin else None
    return next((one for one in own if one.now["nspid"][-1:] and one.now["nspid"][-1] in named), first)


def _deepest(case: Case) -> Optional[Watched]:
    """Down a line of only children that wait in their turn, to the one that works."""
    found, pid = None, case.seen["pid"]
    while True:
        own = [one for one in case.kin if one.now["seen"] and one.now["seen"]["ppid"] == pid and one is not found]
        if not own:
            return found
        found = max(own, key=lambda one: evidence.rate(one.lately, one.now, "cpu_ticks") or 0.0)
        thread = evidence.main_thread(found.now)
        if thread is None or calls.family(thread) not in calls.CHILD:
            return found
        pid = found.now["seen"]["pid"]


def _child_detail(case: Case, child: Watched) -> str:
    seen = child.now["seen"]
    word = hearing.deaf(seen, case.signal or "INT")
    if (child.now["cgroup"] or {}).get("frozen"):
        return "child-frozen"
    if seen["state"] == "D":
        return "child-uninterruptible"
    return {
        "signal-ignored": "child-ignores",
        "signal-blocked": "child-blocks",
        "suspended": "child-stopped",
        "traced": "child-traced",
    }.get(word[0] if word else "", "child")


def child_next(case: Case) -> str:
    """The child that is waited for, as what to turn to."""
    child = _child(case) if case.kin else None
    return "signal-child:%d" % child.now["seen"]["pid"] if child is not None and child.now["seen"] else "wait"


def _shown(one: Watched, word: str) -> str:
    seen = one.now["seen"]
    ignored = [name for name in hearing.POLITE if name in seen["ignored"]]
    return "%s: pid %d %s %s%s" % (
        word,
        seen["pid"],
        seen["state"],
        " ".join(seen["argv"])[:100],
        "; ignores " + " ".join(ignored) if ignored else "",
    )


def works(case: Case, thread: evidence.Thread) -> bool:
    """Whether a thread does anything between the two looks of now."""
    old = next((one for one in (case.main.lately or {}).get("threads", []) if one["tid"] == thread["tid"]), None)
    return old is not None and (thread["cpu_ticks"] > old["cpu_ticks"] or thread["switches"] > old["switches"])


def all_locked(case: Case) -> bool:
    """Whether every thread waits for something that only another one of them could do, and none of them does anything."""
    threads = case.main.now["threads"]
    return bool(threads) and all(calls.endless(thread["call"]) and not works(case, thread) for thread in threads)


def deadlock_of_owners(case: Case) -> Optional[Finding]:
    """Threads that wait for mutexes which they hold for each other, in a circle: what the mutexes themselves say."""
    circle = mutexes.circle(case.seen["pid"], case.main.now["threads"])
    if not circle or any(works(case, thread) for thread in case.main.now["threads"] if thread["tid"] in circle):
        return None
    facts = ["thread %d waits for a mutex of thread %d" % (one, circle[place - len(circle) + 1]) for place, one in enumerate(circle)]
    return finding(("deadlocked", "threads" if len(circle) > 1 else "self"), "proven", case.last_resort(), False, facts)
