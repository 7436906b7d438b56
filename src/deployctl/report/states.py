"""`deployctl status` for a person: what runs, with which flags, since when, by which run."""

from __future__ import annotations

from typing import Any

from deployctl.report import faults, text
from deployctl.report.lines import ENDS
from deployctl.report.text import ago, clock, command, process, safe
from deployctl.values import show_duration


def lines(target: str, state: dict[str, Any]) -> list[str]:
    """A few lines for each workload that the target or a playbook knows."""
    if not state["workloads"]:
        return [f"{target}: no workload is known here: deployctl launched none, and no playbook names one"]
    return [line for workload in state["workloads"] for line in _workload(target, workload)]


def _workload(target: str, workload: dict[str, Any]) -> list[str]:
    name, seen, record = f"{target}:{safe(workload['name'])}", workload["process"], workload["record"]
    if workload["fault"]:
        found = [f"{name}: {safe(workload['fault']['what'], 2000)}", f"   do: {safe(workload['fault']['todo'])}"]
    elif seen is not None:
        found = [f"{name}: runs, {process(seen)}"]
    else:
        found = [f"{name}: {_ended(workload)}"]
    if record is not None:
        who = record["who"]
        started = f"launched {ago(record['at'])} ago by run {record['run']} ({safe(who.get('user'))}@{safe(who.get('host'))})"
        stranger = seen is not None and workload["how"] == "match"
        found.append(f"  {'last ' if seen is None or stranger else ''}{started}")
        if seen is None or stranger:
            found.append(f"  command {command(record['argv'])}")
        found.append(f"  log {safe(record['log'])}")
        found += [f"  unit {safe(record['unit'])}.service"] if record.get("unit") else []
    elif seen is not None:
        found.append("  not started by deployctl")
    return found + _last(target, workload)


def _ended(workload: dict[str, Any]) -> str:
    if workload["record"] is None:
        return "does not run; deployctl never launched it here"
    ended = workload["exit"]
    if ended:
        how = f"by {faults.signal_shown(ended['signal'])}" if "signal" in ended else f"with status {ended['status']}"
        lasted = f", after {show_duration(ended['lasted'])}" if "lasted" in ended else ""
        return f"does not run: ended {clock(ended['ended'])} {how}{faults.out_of_memory(ended)}{lasted}"
    return "does not run; how it ended is not known"


def _last(target: str, workload: dict[str, Any]) -> list[str]:
    """Who is at work, or how the last run ended."""
    holder, last = workload["holder"], workload["last"]
    if holder and holder.get("until"):
        waits = f"its job waits until {clock(holder['until'])} for the end of the old process, then goes on"
        return [f"  unattended: {text.holder(holder)}; {waits}"]
    if holder:
        return [f"  at work: {text.holder(holder)}"]
    if workload["unfinished"]:
        return [f"  {text.unfinished(workload['unfinished'])}", f"  do: `deployctl resume --on {target}` brings it to its end"]
    if last is None:
        return []
    if last["what"] != "end":
        return [f"  last run {safe(last['run'])}: killed in prepare at {clock(last['t'])}; nothing was changed by it"]
    return [f"  last run {safe(last['run'])}: status {last['status']}, {ENDS.get(last['outcome'], safe(last['outcome']))}"]
