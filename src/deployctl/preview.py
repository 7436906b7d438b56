"""`--plan`: what a run would do, and how it would end before its cut-over. Nothing is locked, staged or written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from deployctl.errors import BusyError, DeployError
from deployctl.flags.changes import Change, compare
from deployctl.plan import Plan
from deployctl.runner import open_session, opened
from deployctl.transports.connect import Connections


@dataclass(frozen=True)
class Preview:
    """What `--plan` shows: the plan, what the agent found, what each step would do, and the status that the run would have ended with."""

    plan: dict[str, Any]
    found: dict[str, Any]
    steps: tuple[dict[str, Any], ...]
    holder: dict[str, Any] | None
    problems: tuple[DeployError, ...]
    changes: tuple[Change, ...] = ()  # of the command line, against the running one

    @property
    def status(self) -> int:
        """0, else that of the first problem."""
        return self.problems[0].exit_status if self.problems else 0


def preview(plan: Plan, connections: Connections) -> Preview:
    """Looks at the target without lock or staging. Raises DeployError where it cannot be looked at."""
    with open_session(plan.target, connections) as session:
        answer = session.ask("look", workload=plan.workload.as_data())
        found = opened(answer, session)
        plan = plan.knowing(answer["flags"], answer["inherited"])
        steps: list[dict[str, Any]] = []
        problems: list[DeployError] = []
        for step, gathered in zip(plan.steps, plan.gathered, strict=True):
            try:
                step.admit(plan.setting, found, lambda *_, **__: None)
                steps.append(step.describe() | (step.preview(gathered, session, plan.setting, found) or {}))
            except DeployError as error:
                steps.append(step.describe())
                if str(error) not in map(str, problems):  # two steps may miss the same thing
                    problems.append(error)
        if locked := session.locked:
            problems.append(locked)
        holder = answer["holder"]
        if holder:
            problems.append(BusyError("another run holds the workload", where=plan.target.name, todo="wait for it"))
        return Preview(plan.describe(), answer, tuple(steps), holder, tuple(problems), _changes(plan, answer["process"]))


def _changes(plan: Plan, process: dict[str, Any] | None) -> tuple[Change, ...]:
    """What becomes of the running command line."""
    return tuple(compare(process["argv"], plan.workload.command, plan.asked.shape)) if process and plan.launches else ()
