"""The answer of `deployctl why` for a person: what is going on, what to do, what not to do, and the evidence, folded."""

from __future__ import annotations

from typing import Any

from deployctl import verdicts
from deployctl.report.text import command, safe, unfinished
from deployctl.values import show_size

DOES = {
    "handler": "has a handler", "end": "ends it at once (nothing of its own is run)", "ignored": "is ignored", "blocked": "is blocked",
    "refused": "is refused: another user's process", "pid1": "is dropped: it is the first process of its container",
    "dead": "comes too late: it is dead", "dying": "comes too late: it is dying", "queued": "waits until it goes on",
    "kernel": "may not reach it inside the kernel",
}  # fmt: skip
NEXT = {
    "wait": "wait", "cont": "let it go on with `kill -CONT {pid}`", "thaw": "thaw it", "end-tracer": "end the tracer",
    "fix-filesystem": "repair the file system or driver", "restart-container": "restart the container",
}  # fmt: skip
CALLS = {"wait4": "waits for a child", "waitid": "waits for a child", "futex": "waits for a lock or a thread"}
SLEEPS = ("nanosleep", "clock_nanosleep", "sleep", "pause")
POLLS = ("poll", "ppoll", "select", "pselect", "epoll_wait", "epoll_pwait", "epoll_pwait2")
FOLDED = 6  # lines of evidence without --verbose
LESS = ("threads:", "caught:", "blocked:", "main thread:", "before:", "written before:")  # what few people read


def lines(answer: dict[str, Any], verbose: bool) -> list[str]:
    """The answer in lines."""
    word, detail = answer["verdict"], answer["detail"]
    line, advice = verdicts.say(word, detail)
    shown = f"{word} ({detail})" if detail else word
    who = f"pid {answer['pid']}" if answer.get("pid") else "it"
    found = [f"{safe(answer['target'])}: {who}: {safe(shown)}, {answer['confidence']}", f"  {line}", f"  do: {advice}{_next(answer)}"]
    found += [f"  not: {verdicts.never(word)}"] if verdicts.never(word) else []
    found += [f"  {safe(one['where'])}: {safe(one['command'])}  ({safe(one['takes'])})" for one in answer.get("commands", [])]
    found += [f"  also: {', '.join(map(safe, answer['also']))}"] if answer["also"] else []
    found += [f"  {unfinished(answer['unfinished'])}"] if answer.get("unfinished") else []
    found += _signals(answer) + _tree(answer, verbose)
    return found + _evidence(answer, verbose)


def _next(answer: dict[str, Any]) -> str:
    kind, _, name = str(answer["next"]).partition(":")
    if kind == "signal":
        return f"{'; to end it' if answer['verdict'] == 'running' else ''} (`kill -{safe(name)} {answer['pid']}`)"
    if kind == "signal-child":
        deaf = any(str(row["pid"]) == name and "INT" in row["ignored"] for row in answer["tree"])
        return f" (`kill -{'TERM' if deaf else 'INT'} {safe(name)}`)"
    shown = NEXT.get(kind, "").format(pid=answer["pid"])
    return f" ({shown})" if shown and kind == "cont" else ""


def _signals(answer: dict[str, Any]) -> list[str]:
    told = [f"{name} {DOES.get(item['does'], safe(item['does']))}" for name, item in answer["signals"].items()]
    return [f"  signals: {'; '.join(told)}"] if told else []


def _tree(answer: dict[str, Any], verbose: bool) -> list[str]:
    rows = answer["tree"]
    shown = rows if verbose else rows[:6]
    more = len(rows) - len(shown)
    return [f"  {_row(row, answer['pid'])}" for row in shown] + ([f"  … and {more} more"] if more else [])


def _row(row: dict[str, Any], main: int | None) -> str:
    indent = "" if row["pid"] == main else "  "
    ignores = f", ignores {' '.join(row['ignored'])}" if row["ignored"] else ""
    return f"{indent}pid {row['pid']} {_does(row)}{ignores}: {command(row['argv'] or [row['comm']], 100)}"


def _does(row: dict[str, Any]) -> str:
    states = {"Z": "is dead", "T": "is stopped", "t": "is held by a tracer", "D": "waits in the kernel"}
    if row["state"] in states:
        return states[row["state"]]
    if row["written"] and row["written"] >= 1000:
        return f"writes {show_size(row['written'])}/s"
    if row["state"] == "R" or (row["cpu"] or 0) >= 0.2:
        return f"computes ({row['cpu'] or 0:.0%} of a core)"
    call = safe(row["call"])
    known = "sleeps" if call in SLEEPS else "waits for input" if call in POLLS else f"waits ({call})" if call else "waits"
    return CALLS.get(call, known)


def _evidence(answer: dict[str, Any], verbose: bool) -> list[str]:
    told = [line for line in answer["evidence"] if verbose or not line.startswith(LESS)]
    unread = [line for line in told if line.startswith("unreadable:")]
    kept = told if verbose else [line for line in told if line not in unread][:FOLDED] + unread
    more = len(answer["evidence"]) - len(kept)
    return [f"  {safe(line)}" for line in kept] + ([f"  ({more} more with --verbose)"] if more > 0 else [])
