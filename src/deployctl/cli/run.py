"""What a playbook's command does: load, select, bind, then run or preview. Imported when a command is called, not before."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deployctl import fleet, inventory
from deployctl import playbook as playbook_file
from deployctl.cli.each import each
from deployctl.cli.options import How
from deployctl.events import Event, Sink
from deployctl.journal import Journal
from deployctl.plan import Plan, bind
from deployctl.preview import Preview, preview
from deployctl.report import plans as plan_report
from deployctl.report.screen import Quiet, Screen, as_json
from deployctl.transports.connect import Connections
from deployctl.values import duration


def playbook(
    path: Path, targets: Sequence[str], values: Mapping[str, Any], extra: tuple[str, ...], environment: Mapping[str, str], cwd: Path,
    how: How, *, keep: bool, unset: Sequence[str],
) -> int:  # fmt: skip
    """The exit status of a playbook on its targets. Every word is checked before anything is contacted. Raises DeployError."""
    loaded = playbook_file.load(path)
    hosts = inventory.load(inventory.find_hosts_file(environment, cwd))
    bound = [bind(loaded, target, values, extra, unset, keep) for target in hosts.select(targets)]
    return plans(bound, how)


def plans(bound: Sequence[Plan], how: How) -> int:
    """Runs or previews plans that are bound. Raises WordsError for a faulty `wait`, before anything is contacted."""
    patience = duration(how.wait) if how.wait else None
    return _preview(bound, how) if how.plan else _run(bound, how, patience)


def _run(bound: Sequence[Plan], how: How, patience: float | None) -> int:
    journal = Journal()
    show: Sink = as_json if how.as_json else Screen(sys.stderr if how.quiet else None)
    show = Quiet(show) if how.quiet else show

    def emit(event: Event) -> None:
        journal.append(event)
        show(event)

    status = fleet.run_all(bound, emit, patience)
    if journal.trouble and not how.quiet:
        print(f"note: the journal could not be written: {journal.trouble}", file=sys.stderr)
    return status


def _preview(bound: Sequence[Plan], how: How) -> int:
    with Connections() as connections:

        def look(plan: Plan) -> int:
            seen = preview(plan, connections)
            if how.quiet and not seen.status:
                return 0
            print(json.dumps(_as_data(seen)) if how.as_json else "\n".join(plan_report.lines(seen)))
            return seen.status

        return each(bound, look)


def _as_data(seen: Preview) -> dict[str, Any]:
    problems = [{"what": problem.what, "where": problem.where, "todo": problem.todo} for problem in seen.problems]
    changes = [change.as_data() for change in seen.changes]
    found = {"steps": list(seen.steps), "found": seen.found, "changes": changes, "holder": seen.holder}
    return {**seen.plan, **found, "problems": problems, "status": seen.status}
