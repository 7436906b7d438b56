"""What an event says to a person: a label, a sentence, and how it is meant ("good", "bad", "note", "plain"). Pure: event in, line out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
    was = f"; the running process uses {safe(event['was'])}" if event.get("was") else ""
    return Line("program", f"{safe(event['path'])}{prefix}{was}", "note" if was else "plain")


def _environment(event: Event) -> Line:
    base = "inherited from the running process" if event["base"] == "inherit" else event["base"]
    return Line("environ", safe(base), "note" if event["lost"] or event["changed"] else "plain", tuple(variables(event)))


def variables(found: dict[str, Any]) -> list[str]:
    """What the new environment lacks of the running process's, and has otherwise; names only."""
    lost, changed = (", ".join(safe(name) for name in found.get(key) or []) for key in ("lost", "changed"))
    told = [f"lost: {lost} (the running process has it; `environment:` or `env_file:` would keep it)"] if lost else []
    return [*told, f"changed: {changed}"] if changed else told


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
    gone = event.get("gone") or []
    goes = f", {len(gone)} to be removed" if gone else ""
    text = f"{len(event['changed'])} of {count(event['files'], 'file')} differ{goes}, {size}, staged for {safe(event['destination'])}"
    return Line("push", text, more=(*map(safe, event["changed"][:10]), *(f"{safe(path)} is removed" for path in gone[:10])))


def _sending(event: Event) -> Line:
    return Line("", f"{show_size(event['sent'])} of {show_size(event['of'])} sent")


def _verified(event: Event) -> Line:
    warnings = event.get("warnings") or []
    done = [f"{count(event['files'], 'staged file')} compiled by {safe(event['interpreter'])} ({safe(event['version'])})"]
    done += [f"{safe(module)} imported" for module in event.get("imported") or []]
    done += [f"{command(event['command'], 60)} ended with 0"] if event.get("command") else []
    more = tuple(f"note: {safe(warning['path'])}: {safe(warning['what'])}" for warning in warnings)
    return Line("verify", ", ".join(done), "bad" if more else "plain", more)


def _restoring(event: Event) -> Line:
    to = f"run {event['to']}" if event["to"] else "before the first launch"
    more = [safe(path) for path in event["changed"][:10]] + [f"{safe(path)} goes" for path in event["gone"][:10]]
    text = f"back to {to}: {count(len(event['changed']), 'file')} as then, {len(event['gone'])} to go"
    return Line("restore", text, more=tuple(more))


def _cutover(event: Event) -> Line:
    return Line("cut over", f"job {event['job_pid']} in the target leads from here; it goes on if this connection ends", "note")


def _live(event: Event) -> Line:
    gone = f", {count(event['removed'], 'old one')} removed" if event.get("removed") else ""
    return Line("live", f"{count(event['files'], 'new file')} in place{gone}")


def _back(event: Event) -> Line:
    return Line("back", f"{count(event['files'], 'file')} put back as before" if event["files"] else "no file had changed", "bad")


def _launched(event: Event) -> Line:
    return Line("launched", f"pid {event['pid']}: {command(event['argv'])}", more=(f"log {safe(event['log'])}",))


def _checking(event: Event) -> Line:
    waits = "; ".join(safe(wait["seen"]) for wait in event.get("waits") or []) or "waits for its time"
    bound = f" of {show_duration(event['within'])}" if "within" in event else ""
    return Line("", f"{show_duration(event['elapsed'])}{bound}: alive, {waits}")


def _checked(event: Event) -> Line:
    line = f"; log: {safe(event['line'], 120)}" if event.get("line") else ""
    passed = [safe(name) for name in event.get("passed") or [] if name not in ("log", "absent")]
    metric = event.get("metric")
    told = "".join(f"; {figures(metric)}" if metric and name == safe(metric["name"]) else f"; {name}" for name in passed)
    return Line("check", f"alive for {show_duration(event['alive'])}{line}{told}", "good")


def figures(metric: dict[str, Any]) -> str:
    """A metric before the stop and after the launch."""
    before, after = ("not known" if number is None else f"{number:.6g}" for number in (metric["before"], metric["after"]))
    return f"{safe(metric['name'])} {before} before, {after} after"


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


def _moved(event: Event) -> Line:
    return Line("moved", f"container {event['container']} is on node {safe(event['node'])} now; followed to {safe(event['host'])}", "note")


def _started(event: Event) -> Line:
    return Line("started", f"container {event['container']}, after {show_duration(event['seconds'])}", "note")


def _snapshot(event: Event) -> Line:
    back = f"`pct rollback {event['container']} {safe(event['name'])}` on its host goes back to it: a person's decision, all since is lost"
    return Line("snapshot", f"{safe(event['name'])} after {show_duration(event['seconds'])}", more=(back,))


def _snapshot_skipped(event: Event) -> Line:
    return Line("snapshot", f"none: {safe(event['why'])}", "bad")


def _pruned(event: Event) -> Line:
    trouble = f"not all old ones could be removed: {safe(event['trouble'])}" if event.get("trouble") else ""
    text = f"{count(len(event['names']), 'old one')} removed, the newest {event['keep']} kept"
    return Line("snapshot", trouble or text, "bad" if trouble else "plain")


ENDS = {
    "cancelled": "cancelled: what ran before runs",
    "lingering": "the old process still runs and the job lingers; nothing new was started yet",
    "running": "the workload runs",
    "stopped": "the workload is stopped",
    "done": "done",
    "runs-already": "it runs already: nothing to do",
    "unchanged": "nothing to do",
    "refused": "nothing was changed",
    "rolled-back": "rolled back: what ran before runs again",
    "left": "something of the workload runs, as the failed step left it",
    "not-stopped": "the old process still runs; nothing new was started",
    "unfinished": "its job was killed; something of the workload runs",
    "down": "DOWN: nothing of the workload runs",
    "busy": "busy: another run is at work; nothing was changed",
    "unreachable": "the target cannot be used; nothing was changed",
    "interrupted": "interrupted; nothing was changed",
    "detached": "nobody follows any more; the job goes on in the target",
}


def _end(event: Event) -> Line:
    text: str = ENDS.get(event["outcome"], safe(event["outcome"]))
    running = event.get("process")
    if event["outcome"] == "rolled-back" and not running:
        text = "rolled back: nothing of the workload runs, as before"
    if running:
        text += f" as pid {running['pid']}: {command(running['argv'])}"
    if event.get("down") is not None:
        text += f"; it was down for {show_duration(event['down'])}"
    if event["status"] not in (0,) and event.get("reason"):
        text += f", because: {safe(event['reason'])}"
    text += "".join(f"; {figures(metric)}" for metric in event.get("metrics") or [])
    return Line(event["target"], text, "good" if event["status"] == 0 else "bad")


SAYINGS: dict[str, Callable[[Event], Line | None]] = {
    "begin": _begin, "connected": _connected, "locked": _locked, "found": _found, "program": _program, "flags": _flags,
    "environment": _environment, "chosen": _chosen, "unchanged": _unchanged, "sending": _sending, "staged": _staged,
    "verified": _verified, "restoring": _restoring, "cutover": _cutover, "op": _op, **stops.SAYINGS, "live": _live, "back": _back,
    "launched": _launched, "checking": _checking, "checked": _checked, "failed": _failed, "end": _end,
    "cancelled": _cancelled, "job-died": _job_died, "unfinished": _unfinished, "busy": _busy, "moved": _moved, "started": _started,
    "snapshot": _snapshot, "snapshot-skipped": _snapshot_skipped, "pruned": _pruned,
}  # fmt: skip


def line(event: Event) -> Line | None:
    """The line of an event; None for one that says nothing to a person. An unknown word is shown as it is.

    Whatever an event holds may come from a target: control characters are neutralised here once more, for all of it.
    """
    say = SAYINGS.get(event["what"])
    said = say(event) if say else Line(event["what"], "")
    return said and Line(safe(said.label), safe(said.text, LONGEST), said.mood, tuple(safe(text, LONGEST) for text in said.more))
