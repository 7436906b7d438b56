"""`--plan` for a person: what would happen, what is known of the running process, and how the run would have ended before its cut-over."""

from __future__ import annotations

from typing import Any

from deployctl.report import faults
from deployctl.report.text import command, count, holder, process, safe
from deployctl.runner import Preview
from deployctl.values import show_duration, show_size


def lines(preview: Preview) -> list[str]:
    """The whole plan, line by line."""
    plan, workload = preview.plan, preview.plan["workload"]
    found = [
        f"plan: {plan['playbook']} of {workload['name']} on {plan['target']}; nothing is changed by this",
        f"  running    {_running(preview.found)}",
        f"  command    {command(workload['command'])}",
        f"  directory  {safe(workload['directory'])}",
        *[f"  set        {safe(name)}={safe(text)}" for name, text in workload["environment"].items()],
    ]
    if preview.holder:
        found.append(f"  locked by  {holder(preview.holder)}")
    for number, step in enumerate(preview.steps, 1):
        found.append(f"  {number}. {_step(step, workload)}")
        found += [f"       {safe(path)}" for path in step.get("changed", [])]
        found += [f"       {safe(path)} is removed" for path in step.get("gone", [])]
    for problem in preview.problems:
        found += faults.lines(problem)
    ends = f"end with status {preview.status} before its cut-over" if preview.problems else "go on to its cut-over"
    return [*found, f"a run would {ends}"]


def _running(found: dict[str, Any]) -> str:
    if "process" in found["faults"]:
        return "more than one process could be meant, see below"
    if found["process"] is None:
        return "no process of the workload"
    return process(found["process"]) + (f" (of run {found['run']})" if found["run"] else " (not started by deployctl)")


def _step(step: dict[str, Any], workload: dict[str, Any]) -> str:
    say = {"push": _push, "verify": _verify, "stop": _stop, "check": _check}.get(step["step"])
    if step["step"] == "launch":
        return f"launch    {command(workload['command'], 120)}"
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


def _stop(step: dict[str, Any]) -> str:
    return ", then ".join(f"{rung['signal']} for up to {show_duration(rung['wait'])}" for rung in step["ladder"])


def _check(step: dict[str, Any]) -> str:
    parts = [f"alive for {show_duration(step.get('alive', 5.0))}"]
    if step.get("log"):
        parts.append(f"a line of the log matches '{safe(step['log'])}' within {show_duration(step.get('within', 60.0))}")
    return ", ".join(parts)
