"""A plan: a playbook bound to one target and to flag values, before anything was looked at; and the job that it becomes with Facts.

Both are pure data: `bind` reads files of the controller, `compile_job` reads nothing, and neither connects to anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from deployctl.events import new_run
from deployctl.flags.asked import Asked, Settled, Texts
from deployctl.inventory import TargetSpec
from deployctl.playbook import LoadedPlaybook
from deployctl.steps.base import Operation, Operations, Setting, Step
from deployctl.steps.restore import Restore
from deployctl.steps.stop import Stop
from deployctl.workload import DEFAULT_LADDER, Workload

JOB_VERSION = 1
STOP, START = ("stop",), ("launch", "check")  # the steps of `deployctl stop` and `deployctl start`
BACK = ("stop", "launch", "check")  # those of `deployctl rollback`, beside the files


@dataclass(frozen=True)
class Plan:
    """What one run on one target is to do. `gathered` holds what each step found on the controller (push: its files, hashed)."""

    playbook: str
    target: TargetSpec
    setting: Setting
    steps: tuple[Step, ...]
    gathered: tuple[Any, ...]
    asked: Asked
    settled: Settled
    unless_running: bool = False  # a workload that runs is left alone, and that is well

    @property
    def run(self) -> str:
        """The run's id."""
        return self.setting.run

    @property
    def workload(self) -> Workload:
        """The workload, its command with the new flags."""
        return self.setting.workload

    @property
    def flags(self) -> Mapping[str, Any]:
        """The values in force, by the flags' names."""
        return self.settled.values

    @property
    def launches(self) -> bool:
        """Whether anything is started: a stop alone keeps and drops no flag."""
        return any(step.word in START for step in self.steps)

    def knowing(self, last: Texts, inherited: Mapping[str, Any] | None = None) -> Plan:
        """The plan with what the last launch remembered of its flags, and for `command: inherit` with the process to inherit from.

        Raises RefusedError for a kept value that is allowed no more.
        """
        asked, workload = self.asked, self.workload
        if inherited is not None:
            asked = replace(asked, command=tuple(inherited["argv"]))
            workload = replace(workload, directory=inherited["directory"], user=inherited["user"])
        settled = asked.settle(last) if self.launches else asked.settle()
        workload = replace(
            workload, command=settled.command, environment=settled.environment, flags=settled.remembered, flags_before=last,
            without=settled.without, newest=settled.newest,
        )  # fmt: skip
        return replace(self, setting=replace(self.setting, workload=workload), asked=asked, settled=settled)

    def describe(self) -> dict[str, Any]:
        """The plan as data, for `--plan` and for JSON."""
        return {
            "playbook": self.playbook,
            "target": self.target.name,
            "workload": self.workload.as_data(),
            "flags": dict(self.flags),
            "kept": self.settled.kept,
            "dropped": self.settled.dropped,
            "steps": [step.describe() for step in self.steps],
        }


@dataclass(frozen=True)
class Rollback(Plan):
    """A plan back to an earlier run: its command line is that run's, whatever the playbook and the last launch say of flags."""

    def knowing(self, last: Texts, inherited: Mapping[str, Any] | None = None) -> Plan:
        """The same plan; what the last launch remembered is kept for its undo."""
        workload = replace(self.workload, flags_before=last)
        return replace(self, setting=replace(self.setting, workload=workload))


def back(plan: Plan, to: Mapping[str, Any]) -> Rollback:
    """The plan, bound with BACK, as a way back to what the agent's `restore` has answered."""
    command = tuple(to["argv"])
    workload = replace(
        plan.workload, command=command, directory=to["directory"] or plan.workload.directory, flags=to["flags"], newest=(), inherit=False
    )
    return Rollback(
        playbook=plan.playbook, target=plan.target, setting=replace(plan.setting, workload=workload),
        steps=(Restore(to=to["to"], undone=tuple(to["undone"])), *plan.steps), gathered=(None, *plan.gathered), asked=plan.asked,
        settled=Settled(command, plan.settled.environment, {}, to["flags"]),
    )  # fmt: skip


def bind(
    playbook: LoadedPlaybook, target: TargetSpec, values: Mapping[str, Any], extra: Sequence[str] = (), unset: Sequence[str] = (),
    keep: bool = False, only: Sequence[str] = (),
) -> Plan:  # fmt: skip
    """Binds a playbook. Raises WordsError or RefusedError.

    values are parsed flag values by name, `extra` the words after `--`, `unset` the names of flags to take away; `keep`: flags that are
    not given have the values of the last launch, once they are known (`Plan.knowing`). only: the words of the steps that are taken (STOP
    or START), all of them without it. A stop alone is not undone: it was asked for.
    """
    model = playbook.model
    command = tuple(model.workload.command)
    asked = Asked(command, dict(model.workload.environment), playbook.shape, values, tuple(extra), tuple(unset), keep)
    settled = asked.settle()
    stop = next((step for step in model.steps if isinstance(step, Stop)), None)
    run, ladder = new_run(), stop.rungs() if stop else DEFAULT_LADDER
    workload = model.workload.bound(settled.command, settled.environment, run, ladder)
    setting = Setting(
        run=run,
        workload=replace(workload, flags=settled.remembered, inherit=not command, newest=settled.newest),
        sources=playbook.path.resolve().parent,
        ladder=ladder,
        rollback=model.on_failure == "rollback" and only != STOP,
    )
    steps = tuple(step for step in model.steps if not only or step.word in only)
    gathered = tuple(step.gather(setting) for step in steps)
    return Plan(playbook.name, target, setting, steps, gathered, asked, settled, unless_running=only == START)


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
