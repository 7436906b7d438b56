"""Rules for a signal that was taken by a process that is still there: what its main thread came to, and whether the work goes on.

The kernel does not say which of these it is: it shows where the main thread was and is, and what grows. Frames and printed lines
refine it.
"""

from __future__ import annotations

import re
from typing import List, Optional

from . import calls, evidence, hearing, progress, waits
from .case import Case, Finding, finding

BOTTOMS = ("<module>", "_run_module_as_main")  # where the frames of a program that runs begin
WAITS_FOR_THREADS = re.compile(r"^(_shutdown \(threading|_python_exit )", re.MULTILINE)
THREADS = re.compile(r"^(_shutdown|_python_exit|join|wait|_wait_for_tstate_lock) .*(thread|\bfrozen\b)", re.MULTILINE)
WAITS_FOR_CHILD = re.compile(
    r"^((wait|_wait|_try_wait|communicate|_communicate) \(subprocess|(poll|wait) \(popen_|join \((process|pool|_base)\.py)", re.MULTILINE
)
STOPS = re.compile(r"stop|shut|exit|quit|terminat|finish|interrupt|gracef|signal|sigint|sigterm|clean|saving|will end", re.IGNORECASE)
GOES_ON = re.compile(r"go(ing)? on|continu|ignor|resum|retry|skip|Exception ignored|not stopping", re.IGNORECASE)
INTERRUPTED = re.compile(r"^(KeyboardInterrupt|SystemExit)\b", re.MULTILINE)


def judge(case: Case) -> Finding:
    """The first rule that holds."""
    rules = (
        waits.output_blocked, progress.progressing, waits.waits_for_child, _framed, _circle, _still_to_run, _exit_blocked, _lives_on,
        _blocked, _reacted,
    )  # fmt: skip
    return next((found for found in (rule(case) for rule in rules) if found is not None), None) or unexplained(case)


def quiet(case: Case) -> List[Finding]:
    """What is to be said of a process to which nothing is known to have been sent: it runs, or it cannot print, or it cannot go on."""
    found = [one for one in (waits.output_blocked(case), waits.deadlock_of_owners(case), waits.wrapper(case)) if one is not None]
    runs = finding(("running", ""), "strong", _polite(case), _kill_is_useless(case))
    first = [one for one in found if one["verdict"] == "output-blocked" or (one["verdict"] == "deadlocked" and not case.interpreter)]
    return (first or [runs]) + [dict(one, aside=True) for one in found if one not in first]


def unexplained(case: Case) -> Finding:
    """It is still there, and nothing that is known fits."""
    return finding(("unexplained", ""), "hint", "wait", True if case.signal == "KILL" else "unknown")


def _kill_is_useless(case: Case) -> bool:
    return hearing.unheard(case.seen, "KILL") is not None


def _polite(case: Case) -> str:
    return "none" if hearing.better(case.seen) == "signal:INT" else hearing.better(case.seen)


# --- frames: the names that decide


def _framed(case: Case) -> Optional[Finding]:
    """What the Python frames of the main thread say, where they could be read. The rules below need none."""
    stack = list(case.stack)
    text = "\n".join(stack)
    if not stack or not case.signals:
        return None
    bottom = case.stack_before[-1] if case.stack_before else None
    ends = stack[-1] != bottom if bottom else not stack[-1].startswith(BOTTOMS)
    if ends or WAITS_FOR_THREADS.search(text):  # what the interpreter calls at its end stands on no module's frame
        facts = ["the interpreter is at its end: %s" % stack[-1]]
        return finding(("exit-blocked", "threads" if THREADS.search(text) else "exit-hooks"), "strong", _again(case), False, facts)
    if case.kin and WAITS_FOR_CHILD.search(text):
        kept = WAITS_FOR_CHILD.search("\n".join(case.stack_before))
        return (waits.wrapper_of if kept else waits.awaited)(case, "strong")
    return None


def _circle(case: Case) -> Optional[Finding]:
    """Several threads that hold mutexes for each other; one that waits for its own is in a call that does not end."""
    found = waits.deadlock_of_owners(case)
    return found if found and found["detail"] == "threads" else None


def _still_to_run(case: Case) -> Optional[Finding]:
    """The interpreter itself says that a signal has come whose handler it has not run."""
    if not case.tripped or not case.signals:
        return None
    old = evidence.main_thread(case.before)
    elsewhere = case.moved() or (old is not None and _busy(case) and old["state"] != "R")  # the flag may outlive a handler in C
    return None if elsewhere else _not_run(case, "strong")


def _not_run(case: Case, sure: str) -> Finding:
    kind = "native-busy" if _busy(case) else "native-blocked"
    does = "computes" if kind == "native-busy" else "is in the same call as before"
    return finding(("handler-not-run", kind), sure, case.last_resort(), False, ["the main thread %s" % does])


# --- the end of the interpreter


def _exit_blocked(case: Case) -> Optional[Finding]:
    """The traceback of an uncaught KeyboardInterrupt was printed, and the main thread has come to a wait elsewhere."""
    if case.thread is None or case.thread["call"] is None or (case.before and not case.moved()):
        return None
    lock = calls.name(case.thread["call"]) == "futex"
    others = len(case.main.now["threads"]) > 1
    ended = bool(INTERRUPTED.search(case.printed)) and case.interpreter == "python"
    if ended and not case.cycles_now():
        return finding(("exit-blocked", "threads" if lock and others else "exit-hooks"), "strong", _again(case), False)
    works = any(waits.works(case, thread) for thread in case.main.now["threads"][1:])
    if case.before and lock and others and not case.handles() and (works or not waits.all_locked(case)):
        return finding(("exit-blocked", "threads"), "hint", _again(case), False, ["the main thread waits for another thread"])
    return None


def _again(case: Case) -> str:
    """A second INT ends a wait for threads; where it was sent, or has no handler, TERM."""
    return "signal:INT" if list(case.signals).count("INT") < 2 and "INT" in case.seen["caught"] else case.last_resort()


# --- it lives on


def _lives_on(case: Case) -> Optional[Finding]:
    """It wakes, computes or prints as it did before: the signal was swallowed, or a flag is set that is looked at later."""
    busy = _busy(case)
    if not busy and not case.cycles():
        return None
    said = case.printed.strip()
    stops, goes_on = bool(STOPS.search(GOES_ON.sub("", said))), bool(GOES_ON.search(said))
    if busy and case.interpreter and case.tripped is not False and not _has_written_since(case):
        return _not_run(case, "strong" if case.by_default() and not case.cycles() else "hint")
    if case.handles() and not busy:
        return finding(("shutdown-pending", "handler"), "hint", "wait", False, ["the stack is deeper than before: a handler runs"])
    if goes_on or (case.by_default() and (progress.as_before(case) or not stops)):
        return finding(("signal-swallowed", "except" if case.by_default() else "handler"), "hint", case.last_resort(), False)
    if stops or case.interpreter or not progress.as_before(case):
        return finding(("shutdown-pending", "flag" if progress.as_before(case) else "reacted"), "hint", "wait", False)
    return finding(("signal-swallowed", "handler"), "hint", case.last_resort(), False)


def _busy(case: Case) -> bool:
    """Whether the main thread computes without a pause, in all looks at it."""
    threads = case.threads()
    return bool(threads) and all(thread["known"] and thread["call"] is None and thread["state"] == "R" for thread in threads[-2:])


def _has_written_since(case: Case) -> bool:
    """Whether the process has written anything since the signal."""
    old = case.before or case.main.lately
    written = [((taken or {}).get("usage") or {}).get("written_bytes") for taken in (old, case.main.now)]
    wrote = written[0] is not None and written[1] is not None and written[1] > written[0]
    return bool(wrote or case.printed.strip())


# --- it waits where it waited, or somewhere else


def _blocked(case: Case) -> Optional[Finding]:
    """The same call as before: the handler has not run, or it has run and gone back to it."""
    threads = case.threads()
    if len(threads) < 2 or not calls.same([thread["call"] for thread in threads]):
        return None
    name, native = calls.name(threads[-1]["call"]), case.interpreter is not None
    if name == "futex" and not native and waits.all_locked(case):
        return waits.deadlock_of_owners(case) or finding(("deadlocked", "threads"), "strong", case.last_resort(), False)
    woken = threads[-1]["switches"] - threads[0]["switches"]
    if native and case.before and not woken and case.tripped is None:  # handlers run in the main thread alone, and it has not been woken
        return _not_run(case, "strong")
    if (
        case.tripped is False or name in calls.SLEEP or name.startswith("epoll")
    ):  # a handler ends these; the program itself has gone back to it
        flag = not case.by_default() and (STOPS.search(case.printed) or "TERM" in (case.before or case.main.now)["seen"]["caught"])
        kind = ("shutdown-pending", "flag") if flag else ("signal-swallowed", "except" if case.by_default() else "handler")
        return finding(kind, "hint", "wait" if flag else case.last_resort(), False)
    if native:
        return _not_run(case, "strong" if case.by_default() or calls.is_mutex(threads[-1]["call"]) else "hint")
    wrapped = waits.wrapper_by_work(case)
    if wrapped is not None:
        return wrapped
    return finding(("signal-swallowed", "handler"), "hint", case.last_resort(), False)


def _reacted(case: Case) -> Optional[Finding]:
    """It came to another wait: a lock that nobody can give it, a handler that takes its time, something of its own."""
    if case.thread is None or not case.before or not case.moved():
        return None
    if calls.name(case.thread["call"]) == "futex" and waits.all_locked(case):
        kind = "handler" if case.handles() else "threads" if len(case.main.now["threads"]) > 1 else "self"
        sure = "strong" if kind == "handler" or len(case.main.now["threads"]) == 1 else "hint"
        return finding(("deadlocked", kind), sure, case.last_resort(), False, ["every thread waits for a lock of this process"])
    detail = "handler" if case.handles() else "waits"
    facts = ["the stack is deeper than before: a handler runs"] if case.handles() else ["the main thread waits elsewhere than before"]
    return finding(("shutdown-pending", detail), "strong" if case.handles() else "hint", "wait", False, facts)
