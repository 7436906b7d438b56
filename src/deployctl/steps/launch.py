"""launch: starts the workload with its flags, detached, every signal at its default, its exit status kept."""

from __future__ import annotations

from typing import Any, ClassVar

from deployctl.steps.base import Opened, Operation, Operations, Record, Setting, Step


class Launch(Step):
    """Starts the workload in the clean environment plus what the playbook's `environment:` says."""

    word: ClassVar[str] = "launch"
    phase: ClassVar[str] = "cutover"
    needs_log: ClassVar[bool] = True
    once: ClassVar[bool] = True

    def admit(self, setting: Setting, opened: Opened, record: Record) -> None:
        """Refuses a command whose program is not there, or is not the one that the running process uses."""
        opened.require("process")
        opened.require("program")
        opened.require("interpreter")
        opened.require("scope")
        if opened.program is not None:
            record("program", path=opened.program["path"], prefix=opened.program.get("prefix"))

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
        }
        if workload.inherit:
            launch |= {"inherit": True, "without": list(workload.without)}
        if workload.newest:
            launch |= {"newest": [dict(wanted) for wanted in workload.newest]}
        stop = {"op": "stop", "who": "launched", "ladder": [item.as_data() for item in setting.ladder]}
        return Operations(do=(launch,), undo=(stop,))
