"""What a playbook's command does: load, select, bind, then run or preview. Imported when a command is called, not before."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deployctl import fleet, inventory
from deployctl import playbook as playbook_file
from deployctl.errors import DeployError
from deployctl.events import Event, Sink
from deployctl.journal import Journal
from deployctl.plan import Plan, bind
from deployctl.report import faults
from deployctl.report import plans as plan_report
from deployctl.report.screen import Quiet, Screen, as_json
from deployctl.runner import Preview, preview
from deployctl.transports.connect import Connections
from deployctl.values import duration


def playbook(
    path: Path, targets: Sequence[str], values: Mapping[str, Any], extra: tuple[str, ...], environment: Mapping[str, str], cwd: Path,
    *, plan: bool, quiet: bool, wait: str | None, as_json: bool, keep: bool, unset: Sequence[str],
) -> int:  # fmt: skip
    """The exit status of a playbook on its targets. Every word is checked before anything is contacted. Raises DeployError."""
    loaded = playbook_file.load(path)
    hosts = inventory.load(inventory.find_hosts_file(environment, cwd))
    bound = [bind(loaded, target, values, extra, unset, keep) for target in hosts.select(targets)]
    return plans(bound, plan=plan, quiet=quiet, wait=wait, as_json=as_json)


def plans(bound: Sequence[Plan], *, plan: bool, quiet: bool, wait: str | None, as_json: bool) -> int:
    """Runs or previews plans that are bound. Raises WordsError for a faulty `wait`, before anything is contacted."""
    patience = duration(wait) if wait else None
    return _preview(bound, as_json) if plan else _run(bound, quiet, as_json, patience)


def _run(bound: Sequence[Plan], quiet: bool, json_lines: bool, patience: float | None) -> int:
    journal = Journal()
    show: Sink = as_json if json_lines else Quiet() if quiet else Screen()

    def emit(event: Event) -> None:
        journal.append(event)
        show(event)

    status = fleet.run_all(bound, emit, patience)
    if journal.trouble and not quiet:
        print(f"note: the journal could not be written: {journal.trouble}", file=sys.stderr)
    return status


def _preview(bound: Sequence[Plan], json_lines: bool) -> int:
    statuses = []
    with Connections() as connections:
        for plan in bound:
            try:
                seen = preview(plan, connections)
            except DeployError as error:
                print("\n".join(faults.lines(error)), file=sys.stderr)
                statuses.append(error.exit_status)
                continue
            print(json.dumps(_as_data(seen)) if json_lines else "\n".join(plan_report.lines(seen)))
            statuses.append(seen.status)
    return fleet.worst(statuses)


def _as_data(seen: Preview) -> dict[str, Any]:
    problems = [{"what": problem.what, "where": problem.where, "todo": problem.todo} for problem in seen.problems]
    changes = [change.as_data() for change in seen.changes]
    found = {"steps": list(seen.steps), "found": seen.found, "changes": changes, "holder": seen.holder}
    return {**seen.plan, **found, "problems": problems, "status": seen.status}
