"""launch: starts the workload with its flags, detached, every signal at its default, its exit status kept."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from deployctl.fields import Duration
from deployctl.steps.base import Opened, Operation, Operations, Record, Setting, Step


class Launch(Step):
    """Starts the workload in the environment that the playbook declares. Where no check follows, it must live for `settle`."""

    word: ClassVar[str] = "launch"
    phase: ClassVar[str] = "cutover"
    needs_log: ClassVar[bool] = True
    once: ClassVar[bool] = True

    as_: Literal["process", "systemd"] = Field(default="process", alias="as")
    settle: Duration = 2.0

    def admit(self, setting: Setting, opened: Opened, record: Record) -> None:
        """Refuses a command whose program is not there, or is not the one that the running process uses."""
        for fact in ("process", "environment", "program", "start", "interpreter", "scope"):
            opened.require(fact)
        if self.as_ == "systemd":
            opened.require("systemd")
        if opened.program is not None:
            old = opened.old_program
            was = {"was": old["path"]} if old is not None and old.get("other") else {}
            record("program", path=opened.program["path"], prefix=opened.program.get("prefix"), **was)
        base, found = setting.workload.environment_base, opened.environment
        if base != "clean" or found.get("lost") or found.get("changed"):
            record("environment", base=base, lost=list(found.get("lost", ())), changed=list(found.get("changed", ())))

    def compile(self, setting: Setting, piece: Any) -> Operations:
        """The launch; what undoes it is the stop of what it started, by the playbook's ladder."""
        workload = setting.workload
        launch: Operation = {
            "op": "launch",
            "as": "new",
            "argv": list(workload.command),
            "directory": workload.directory,
            "environment": dict(workload.environment),
            "log": workload.log,
            "user": workload.user,
            "settle": self.settle,
        }
        launch |= {"unit": True} if self.as_ == "systemd" else {}
        if workload.inherit:
            launch |= {"inherit": True, "without": list(workload.without)}
        if workload.newest:
            launch |= {"newest": [dict(wanted) for wanted in workload.newest]}
        stop = {"op": "stop", "who": "launched", "ladder": [item.as_data() for item in setting.ladder]}
        return Operations(do=(launch,), undo=(stop,))
