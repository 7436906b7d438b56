"""A plan: a playbook bound to one target and to flag values, before anything was looked at; and the job that it becomes with Facts.

Both are pure data: `bind` reads files of the controller, `compile_job` reads nothing, and neither connects to anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deployctl import flags
from deployctl.events import new_run
from deployctl.inventory import TargetSpec
from deployctl.playbook import LoadedPlaybook
from deployctl.steps.base import Operation, Operations, Setting, Step
from deployctl.steps.stop import Stop
from deployctl.workload import DEFAULT_LADDER, Workload

JOB_VERSION = 1


@dataclass(frozen=True)
class Plan:
    """What one run on one target is to do. `gathered` holds what each step found on the controller (push: its files, hashed)."""

    playbook: str
    target: TargetSpec
    setting: Setting
    steps: tuple[Step, ...]
    gathered: tuple[Any, ...]
    flags: Mapping[str, Any]

    @property
    def run(self) -> str:
        """The run's id."""
        return self.setting.run

    @property
    def workload(self) -> Workload:
        """The workload, its command with the new flags."""
        return self.setting.workload

    def describe(self) -> dict[str, Any]:
        """The plan as data, for `--plan` and for JSON."""
        return {
            "playbook": self.playbook,
            "target": self.target.name,
            "workload": self.workload.as_data(),
            "flags": dict(self.flags),
            "steps": [step.describe() for step in self.steps],
        }


def bind(playbook: LoadedPlaybook, target: TargetSpec, values: Mapping[str, Any], extra: Sequence[str] = ()) -> Plan:
    """Binds a playbook. `values` are parsed flag values by name, `extra` the words after `--`. Raises WordsError or RefusedError."""
    model = playbook.model
    declared = {flag.name: flag for flag in playbook.flags}
    chosen = {name: values.get(name, flag.default) for name, flag in declared.items()}
    given = {name: value for name, value in chosen.items() if value is not None}
    command = flags.merge(tuple(model.workload.command), [(declared[name], value) for name, value in given.items()], tuple(extra))
    stop = next((step for step in model.steps if isinstance(step, Stop)), None)
    run, ladder = new_run(), stop.rungs() if stop else DEFAULT_LADDER
    setting = Setting(
        run=run,
        workload=model.workload.bound(command, run, ladder),
        sources=playbook.path.resolve().parent,
        ladder=ladder,
        rollback=model.on_failure == "rollback",
    )
    steps = tuple(model.steps)
    return Plan(playbook.name, target, setting, steps, tuple(step.gather(setting) for step in steps), given)


def compile_job(plan: Plan, pieces: Sequence[Any], who: Mapping[str, Any]) -> dict[str, Any]:
    """The job: {"version", "run", "workload", "who", "do", "undo"} (docs/architecture.md section 4).

    What prepare steps leave to be done (going live) comes right before the launch, else at the end. `undo` is in the reverse order of `do`.
    """
    prepared: list[Operations] = []
    cutover: list[Operations] = []
    for step, piece in zip(plan.steps, pieces, strict=True):
        (prepared if step.phase == "prepare" else cutover).append(step.compile(plan.setting, piece))
    at = next((index for index, part in enumerate(cutover) if any(op["op"] == "launch" for op in part.do)), len(cutover))
    order = [*cutover[:at], *prepared, *cutover[at:]]
    undo: list[Operation] = [op for part in reversed(order) for op in part.undo] if plan.setting.rollback else []
    return {
        "version": JOB_VERSION,
        "run": plan.run,
        "workload": plan.workload.as_data(),
        "who": dict(who),
        "do": [op for part in order for op in part.do],
        "undo": undo,
    }
