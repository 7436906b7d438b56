"""`--plan` for a person: what would happen, what is known of the running process, and how the run would have ended before its cut-over."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from deployctl.flags.changes import Change
from deployctl.preview import Preview
from deployctl.report import faults
from deployctl.report.lines import variables
from deployctl.report.text import command, count, holder, process, remembered, safe, unfinished
from deployctl.values import show_duration, show_size

MOST = 20  # processes of a tree that are shown


def lines(preview: Preview) -> list[str]:
    """The whole plan, line by line."""
    plan, workload = preview.plan, preview.plan["workload"]
    found = [
        f"plan: {plan['playbook']} of {workload['name']} on {plan['target']}; nothing is changed by this",
        f"  running    {_running(preview.found)}",
        f"  command    {command(workload['command'])}",
        *_changes(preview.changes),
        *_dropped(plan),
        f"  directory  {safe(workload['directory'])}",
        *[f"  set        {safe(name)}={safe(text)}" for name, text in workload["environment"].items()],
        *[f"  set        {safe(name)}={safe(text)} (the first rung and 30 s)" for name, text in workload.get("implied", {}).items()],
        *_program(preview.found),
        *[f"  environ    {line}" for line in variables(preview.found.get("environment") or {})],
    ]
    if preview.found.get("unfinished"):
        found.append(f"  earlier    {unfinished(preview.found['unfinished'])}; a run brings it to its end first")
    if preview.holder:
        found.append(f"  locked by  {holder(preview.holder)}")
    for number, step in enumerate(preview.steps, 1):
        found.append(f"  {number}. {_step(step, workload)}")
        found += [f"       {safe(path)}" for path in step.get("changed", [])]
        found += [f"       {safe(path)} is removed" for path in step.get("gone", [])]
        found += [f"       {line}" for line in _tree(step)]
    for problem in preview.problems:
        found += faults.lines(problem)
    ends = f"end with status {preview.status} before its cut-over" if preview.problems else "go on to its cut-over"
    return [*found, f"a run would {ends}"]


SIGNS = {"kept": "=", "changed": "~", "added": "+", "removed": "-"}


def _changes(changes: Sequence[Change]) -> list[str]:
    """The command line against the running one, a line for each change; what is kept between them in one."""
    if not changes:
        return []
    if all(change.how == "kept" for change in changes):
        return ["  compared   as it runs: no flag differs"]
    found = ["  compared   with the running one (= kept, ~ changed, + added, - removed):"]
    for how, group in groupby(changes, lambda change: change.how):
        if how == "kept":
            found.append(f"    = {command([word for change in group for word in change.after])}")
            continue
        for change in group:
            was = f"  (was {command(change.before)})" if how == "changed" else ""
            found.append(f"    {SIGNS[how]} {command(change.after or change.before)}{was}")
    return found


def _dropped(plan: dict[str, Any]) -> list[str]:
    """What comes of the values that the last launch had."""
    kept = [f"  kept       {line}, from the last launch" for line in remembered(plan["kept"])]
    advice = "which the last launch had; give it again, or `--keep-flags`"
    return kept + [f"  dropped    {line}, {advice}" for line in remembered(plan["dropped"])]


def _program(found: dict[str, Any]) -> list[str]:
    """The new program where it is another than the one that runs."""
    new, old = found.get("program"), found.get("old_program")
    if not new or not old or not old.get("other"):
        return []
    return [f"  program    {safe(new['path'])}; the running process uses {safe(old['path'])}"]


def _running(found: dict[str, Any]) -> str:
    if "process" in found["faults"]:
        return "more than one process could be meant, see below"
    if found["process"] is None:
        return "no process of the workload"
    return process(found["process"]) + (f" (of run {found['run']})" if found["run"] else " (not started by deployctl)")


def _step(step: dict[str, Any], workload: dict[str, Any]) -> str:
    say = {"push": _push, "verify": _verify, "snapshot": _snapshot, "stop": _stop, "check": _check, "restore": _restore}.get(step["step"])
    if step["step"] == "launch":
        unit = "in a unit of systemd, " if step.get("as") == "systemd" else ""
        return f"launch    {unit}{command(workload['command'], 120)}"
    return f"{step['step']:<8}  {say(step)}" if say else step["step"]


def _push(step: dict[str, Any]) -> str:
    if "changed" not in step:
        return f"{safe(step['from'])} to {safe(step['to'])}"
    gone = f", {len(step['gone'])} to be removed" if step.get("gone") else ""
    return f"{len(step['changed'])} of {count(step['files'], 'file')} differ{gone}, {show_size(step['bytes'])}, to {safe(step['to'])}"


def _verify(step: dict[str, Any]) -> str:
    parts = ["py_compile"] if step.get("py_compile") else []
    parts += [f"import {safe(module)}" for module in step.get("import", [])]
    parts += [command(step["command"], 120)] if step.get("command") else []
    return ", ".join([*parts, f"Python {step['python']}"] if step.get("python") else parts)


def _restore(step: dict[str, Any]) -> str:
    return f"back to run {safe(step['to'])}" if step.get("to") else "back to what ran before the first launch"


def _snapshot(step: dict[str, Any]) -> str:
    return f"of the container, the newest {step['keep']} are kept"


def _stop(step: dict[str, Any]) -> str:
    return ", then ".join(f"{_rung(rung, step)} for up to {show_duration(rung['wait'])}" for rung in step["ladder"])


def _rung(rung: dict[str, Any], step: dict[str, Any]) -> str:
    to = rung.get("to") or step.get("to")
    return f"{rung['signal']} to {to}" if to and rung["signal"] != "KILL" else str(rung["signal"])


def _tree(step: dict[str, Any]) -> list[str]:
    """The processes below the top one, and who gets the first signal; nothing for a single process."""
    members = step.get("tree", [])
    if len(members) < 2:
        return []
    depth: dict[int, int] = {}
    told = []
    first: list[int] = next(iter(step["pids"].values()), [])
    for seen in members[:MOST]:
        depth[seen["pid"]] = depth.get(seen["ppid"], -1) + 1
        role = f"  ({seen['role']})" if seen["role"] else ""
        meant = "  <- gets the signal" if seen["pid"] in first else ""
        told.append(f"{'  ' * depth[seen['pid']]}pid {seen['pid']} {command(seen['argv'], 100)}{role}{meant}")
    more = [f"and {len(members) - MOST} more"] if len(members) > MOST else []
    return [*told, *more, *_clock(step)]


def _clock(step: dict[str, Any]) -> list[str]:
    longest = max((rung["wait"] for rung in step["ladder"] if rung["signal"] != "KILL"), default=0.0)
    if step["clock"] is None or step["clock"] >= longest:
        return []
    return [f"note: this launcher ends its ranks by KILL {show_duration(step['clock'])} after the signal, sooner than the rung"]


def _check(step: dict[str, Any]) -> str:
    parts = [f"alive for {show_duration(step.get('alive', 5.0))}"]
    parts += [f"a line of the log matches '{safe(step['log'])}'"] if step.get("log") else []
    parts += [f"no line of the log matches '{safe(pattern)}'" for pattern in step.get("absent", ())]
    parts += [f"listens on port {port}" for port in step.get("port", ())]
    parts += [f"{safe(step['http']['url'])} answers"] if step.get("http") else []
    parts += [f"`{command(step['command'])}` ends with 0"] if step.get("command") else []
    parts += ["holds a GPU"] if step.get("gpu") else []
    parts += [_metric(step["metric"])] if step.get("metric") else []
    return f"{', '.join(parts)}; within {show_duration(step.get('within', 60.0))}"


def _metric(metric: dict[str, Any]) -> str:
    bounds = [f"{which.replace('_', ' ')} {safe(metric[which])}" for which in ("at_least", "at_most") if metric.get(which)]
    return " ".join([safe(metric.get("name", "metric")), " and ".join(bounds) or "comes"])
