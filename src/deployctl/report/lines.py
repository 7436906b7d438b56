"""What an event says to a person: a label, a sentence, and how it is meant ("good", "bad", "note", "plain"). Pure: event in, line out."""

from __future__ import annotations

from collections.abc import Callable

from deployctl.events import Event
from deployctl.report import faults, stops
from deployctl.report.line import Line
from deployctl.report.text import command, count, process, remembered, safe
from deployctl.values import show_duration, show_size

LONGEST = 8000  # characters of a line


def _begin(event: Event) -> Line:
    return Line("run", f"{event['run']}: {safe(event['playbook'])} of {safe(event['workload'])} on {event['target']}", "note")


def _connected(event: Event) -> Line:
    where = f"container {event['container']}, " if event.get("container") else ""
    return Line("connected", f"{where}{safe(event['node'])}, python {safe(event['python'])} ({safe(event['executable'])})")


def _locked(event: Event) -> Line:
    return Line("locked", safe(event["workload"]))


def _found(event: Event) -> Line:
    seen = event["process"]
    if seen is None:
        return Line("found", "no process of the workload runs")
    origin = f"of run {event['run_of']}" if event.get("run_of") else "not started by deployctl"
    deaf = [name for name in ("INT", "TERM") if name in seen["ignored"]]
    more = (f"it ignores {' and '.join(deaf)}: such a rung is skipped, not waited for",) if deaf else ()
    return Line("found", f"{process(seen)} ({origin})", more=more)


def _program(event: Event) -> Line:
    prefix = f", environment {safe(event['prefix'])}" if event.get("prefix") else ""
    return Line("program", f"{safe(event['path'])}{prefix}")


def _flags(event: Event) -> Line:
    kept = [f"kept {line}, from the last launch" for line in remembered(event["kept"])]
    dropped = [f"dropped {line}, which the last launch had" for line in remembered(event["dropped"])]
    first, *more = [*dropped, *kept] or ["the last launch had none to keep"]
    return Line("flags", first, "note", tuple(more))


def _chosen(event: Event) -> Line:
    passed = tuple(f"passed over: {safe(one['path'])} {safe(one['why'])}" for one in event["passed"])
    what = f"--{safe(event['flag'])}: {safe(event['path'])}" if event["path"] is not None else f"--{safe(event['flag'])}: no file will do"
    return Line("chosen", what if event["found"] or event["path"] is None else f"{what} (the default, no file will do)", "plain", passed)


def _unchanged(event: Event) -> Line:
    return Line("push", f"nothing to send: {count(event['files'], 'file')} compared with {safe(event['destination'])}, none differs")


def _staged(event: Event) -> Line:
    size = f"{show_size(event['bytes'])} ({show_size(event['sent'])} sent)"
    text = f"{len(event['changed'])} of {count(event['files'], 'file')} differ, {size}, staged for {safe(event['destination'])}"
    return Line("push", text, more=tuple(safe(path) for path in event["changed"][:10]))


def _verified(event: Event) -> Line:
    return Line("verify", f"{count(event['files'], 'staged file')} compiled by {safe(event['interpreter'])} ({safe(event['version'])})")


def _cutover(event: Event) -> Line:
    return Line("cut over", f"job {event['job_pid']} in the target leads from here; it goes on if this connection ends", "note")


def _live(event: Event) -> Line:
    return Line("live", f"{count(event['files'], 'new file')} in place")


def _back(event: Event) -> Line:
    return Line("back", f"{count(event['files'], 'file')} put back as before" if event["files"] else "no file had changed", "bad")


def _launched(event: Event) -> Line:
    return Line("launched", f"pid {event['pid']}: {command(event['argv'])}", more=(f"log {safe(event['log'])}",))


def _checking(event: Event) -> Line:
    waits = "the line came" if event.get("line") else "waits for its time or its line"
    return Line("", f"{show_duration(event['elapsed'])}: alive, {waits}")


def _checked(event: Event) -> Line:
    line = f"; log: {safe(event['line'], 120)}" if event.get("line") else ""
    return Line("check", f"alive for {show_duration(event['alive'])}{line}", "good")


def _failed(event: Event) -> Line:
    head, *more = faults.event_lines(event)
    return Line(event.get("op") or "failed", head.removeprefix("error: "), "bad", tuple(more))


def _op(event: Event) -> Line | None:
    return Line("undo", event["op"], "bad") if event["list"] == "undo" else None


def _cancelled(event: Event) -> Line:
    return Line("cancel", f"{safe(event['why'])}, at {event['op']}", "bad")


def _job_died(event: Event) -> Line:
    return Line("job", f"job {event['job_pid']} was killed; it is begun anew where it was", "bad")


def _unfinished(event: Event) -> Line:
    where = f"its last operation was {safe(event['op'])}" if event.get("op") else "it had not begun"
    return Line("earlier", f"run {safe(event['left'])} has no end ({where}); it is brought to one first", "bad")


def _busy(event: Event) -> Line:
    return Line("waits", f"{safe(event['why'])}; waits up to {show_duration(event['patience'])}", "note")


ENDS = {
    "cancelled": "cancelled: what ran before runs",
    "lingering": "the old process still runs and the job lingers; nothing new was started yet",
    "running": "the workload runs",
    "stopped": "the workload is stopped",
    "done": "done",
    "unchanged": "nothing to do",
    "refused": "nothing was changed",
    "rolled-back": "rolled back: what ran before runs again",
    "left": "something of the workload runs, as the failed step left it",
    "not-stopped": "the old process still runs; nothing new was started",
    "down": "DOWN: nothing of the workload runs",
    "busy": "busy: another run is at work; nothing was changed",
    "unreachable": "the target cannot be used; nothing was changed",
    "interrupted": "interrupted; nothing was changed",
    "detached": "nobody follows any more; the job goes on in the target",
}


def _end(event: Event) -> Line:
    text: str = ENDS.get(event["outcome"], safe(event["outcome"]))
    running = event.get("process")
    if running:
        text += f" as pid {running['pid']}: {command(running['argv'])}"
    if event.get("down") is not None:
        text += f"; it was down for {show_duration(event['down'])}"
    if event["status"] not in (0,) and event.get("reason"):
        text += f", because: {safe(event['reason'])}"
    return Line(event["target"], text, "good" if event["status"] == 0 else "bad")


SAYINGS: dict[str, Callable[[Event], Line | None]] = {
    "begin": _begin, "connected": _connected, "locked": _locked, "found": _found, "program": _program, "flags": _flags, "chosen": _chosen,
    "unchanged": _unchanged, "staged": _staged, "verified": _verified, "cutover": _cutover, "op": _op, **stops.SAYINGS, "live": _live,
    "back": _back,
    "launched": _launched, "checking": _checking, "checked": _checked, "failed": _failed, "end": _end,
    "cancelled": _cancelled, "job-died": _job_died, "unfinished": _unfinished, "busy": _busy,
}  # fmt: skip


def line(event: Event) -> Line | None:
    """The line of an event; None for one that says nothing to a person. An unknown word is shown as it is.

    Whatever an event holds may come from a target: control characters are neutralised here once more, for all of it.
    """
    say = SAYINGS.get(event["what"])
    said = say(event) if say else Line(event["what"], "")
    return said and Line(safe(said.label), safe(said.text, LONGEST), said.mood, tuple(safe(text, LONGEST) for text in said.more))
