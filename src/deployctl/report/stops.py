"""What the events of a stop say to a person: who got which signal, what is waited for, how it ended. Pure: event in, line out."""

from __future__ import annotations

from collections.abc import Callable

from deployctl import verdicts
from deployctl.events import Event
from deployctl.report import faults
from deployctl.report.line import Line
from deployctl.report.text import safe
from deployctl.values import show_duration, show_size


def _rung(event: Event) -> Line:
    pids = ", ".join(str(pid) for pid in event["pids"])
    more = ("it has no handler for it: this ends it at once, nothing of its own is run",) if _at_once(event) else ()
    return Line("stop", f"{event['signal']} to pid {pids}, waits up to {show_duration(event['wait'])}", more=more)


def _at_once(event: Event) -> bool:
    return event["signal"] != "KILL" and bool(event.get("outright"))


def _again(event: Event) -> Line:
    return Line("stop", f"{event['signal']} once more: its work is done, and it waits for threads or exit hooks")


def _hurried(event: Event) -> Line:
    return Line("stop", f"no further wait: {event['verdict']}{detail(event)} is proven", "note")


def _protected(event: Event) -> Line:
    names = ", ".join(safe(path) for path in event["files"][:3])
    return Line("stop", f"{event['signal']} is held back for up to {show_duration(event['seconds'])}: half written is {names}", "note")


def _unprotected(event: Event) -> Line:
    names = ", ".join(safe(path) for path in event["files"][:3])
    return Line("stop", f"{event['signal']} goes out after {show_duration(event['seconds'])}, though half written is {names}", "bad")


def _launcher_clock(event: Event) -> Line:
    clock, wait = show_duration(event["seconds"]), show_duration(event["wait"])
    text = f"pid {event['pid']} is a launcher that ends its ranks by KILL {clock} after the signal; the rung waits {wait}"
    return Line("note", text, "bad", ("do: raise its --shutdown-timeout at the next launch, or say `to: ranks`",))


def _rung_skipped(event: Event) -> Line:
    if event["verdict"] is None or event.get("detail") == "not wanted":
        why = event.get("detail") if event["verdict"] is None else f"the verdict is {event['verdict']}, which the playbook leaves out"
        return Line("stop", f"{event['signal']} skipped: {safe(why)}", "note")
    said, _ = verdicts.say(event["verdict"], event.get("detail"))
    return Line("stop", f"{event['signal']} skipped: {event['verdict']}{detail(event)}. {said}", "bad")


def _waiting(event: Event) -> Line:
    parts = [f"signal taken {show_duration(event['taken'])} ago"] if event.get("taken") is not None else []
    parts += [f"state {safe(event.get('state') or '?')}", f"{100 * (event.get('cpu') or 0):.0f} % of a core"]
    growing = event.get("growing") or []
    for file in growing[:1]:
        parts.append(f"writes {safe(file['path'])}, {show_size(file['size'])} so far, {show_size(file['rate'])}/s")
    if event.get("written") and not growing:
        parts.append(f"writes {show_size(event['written'])}/s")
    alive = ", ".join(str(pid) for pid in event["alive"])
    return Line("", f"{show_duration(event['elapsed'])} of {show_duration(event['wait'])}: {', '.join(parts)}; still there: {alive}")


def _stopped(event: Event) -> Line:
    by = f" by {event['by']}" if event.get("by") else ""
    ended = f", {faults.how_ended(event['exit'])}" if event.get("exit") else ""
    dirty = event["verdict"] != "stopped"
    more = tuple(verdicts.say(event["verdict"], event.get("detail"))) if dirty else ()
    return Line("stopped", f"after {show_duration(event['seconds'])}{by}{ended}", "bad" if dirty else "good", more)


def _not_running(event: Event) -> Line:
    return Line("stop", "nothing to stop: no process of the workload runs")


def _not_stopped(event: Event) -> Line:
    said, advice = verdicts.say(event["verdict"], event.get("detail"))
    evidence = [f"seen: {safe(fact)}" for fact in event.get("evidence") or []]
    pids = ", ".join(str(pid) for pid in event["pids"])
    return Line("stop", f"still there: {pids}. {event['verdict']}{detail(event)}: {said}", "bad", (f"do: {advice}", *evidence))


def _lingering(event: Event) -> Line:
    bound = show_duration(event["seconds"])
    if event.get("detail") in ("cancelled", "failed"):
        return Line("lingers", f"a signal was taken: the job waits up to {bound} for the end, then brings back what ran", "note")
    more = "do: follow it with `deployctl attach`, or take it back with `deployctl cancel`"
    return Line("lingers", f"a signal was taken: when the process ends within {bound}, the job goes on by itself", "bad", (more,))


def detail(event: Event) -> str:
    """The detail of a verdict in brackets, if it has one."""
    return f" ({safe(event['detail'])})" if event.get("detail") else ""


SAYINGS: dict[str, Callable[[Event], Line | None]] = {
    "rung": _rung, "signalled": lambda _: None, "rung-skipped": _rung_skipped, "again": _again, "hurried": _hurried,
    "protected": _protected, "unprotected": _unprotected, "launcher-clock": _launcher_clock, "waiting": _waiting, "stopped": _stopped,
    "not-running": _not_running, "not-stopped": _not_stopped, "lingering": _lingering,
}  # fmt: skip
