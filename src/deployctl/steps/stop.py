"""stop: ends the workload's process by a ladder of signals."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from deployctl.errors import WordsError
from deployctl.fields import Duration, Model, SignalName
from deployctl.steps.base import Opened, Operations, Record, Setting, Step
from deployctl.workload import Rung


class RungModel(Model):
    """One signal of a ladder, and how long to wait after it."""

    signal: SignalName
    wait: Duration


def rung(value: object) -> object:
    """The fields of `INT 180s`; anything but a text stands for itself."""
    if not isinstance(value, str):
        return value
    words = value.split()
    if len(words) != 2:
        raise WordsError(f"'{value}' is no rung", todo="write a signal and how long to wait, for example 'INT 180s'")
    return {"signal": words[0], "wait": words[1]}


class Stop(Step):
    """Stops the workload: the rungs of the ladder in order, until nothing of its process tree is left."""

    word: ClassVar[str] = "stop"
    phase: ClassVar[str] = "cutover"
    once: ClassVar[bool] = True

    ladder: list[RungModel] = Field(min_length=1)
    linger: Duration = 3600.0

    @classmethod
    def expand(cls, value: object) -> object:
        """`stop: [INT 180s, TERM 30s]` is the ladder; the bare word `stop` has the default one."""
        if value is None:
            value = ["INT 180s", "TERM 30s", "KILL 10s"]
        if isinstance(value, str):
            raise WordsError(f"'{value}' is no list of rungs", todo=f"write it as a list: '[{value}]'")
        if isinstance(value, list):
            value = {"ladder": value}
        if isinstance(value, dict) and isinstance(value.get("ladder"), list):
            return {**value, "ladder": [rung(item) for item in value["ladder"]]}
        return value

    def rungs(self) -> tuple[Rung, ...]:
        """The ladder as plain data."""
        return tuple(Rung(item.signal, item.wait) for item in self.ladder)

    def describe(self) -> dict[str, Any]:
        """The ladder, waits in seconds."""
        return {"step": self.word, "ladder": [item.as_data() for item in self.rungs()], "linger": self.linger}

    def admit(self, setting: Setting, opened: Opened, record: Record) -> None:
        """Refuses what the job could not bring to an end: two unrelated matches, or a process that a rollback could not start again."""
        opened.require("process")
        if opened.process is not None and setting.rollback:
            opened.require("capture")

    def compile(self, setting: Setting, piece: Any) -> Operations:
        """The stop; and what undoes it: the process that ran before, as it ran."""
        stop = {"op": "stop", "who": "before", "ladder": [item.as_data() for item in self.rungs()], "linger": self.linger}
        again = ({"op": "launch", "as": "before"}, {"op": "check", "alive": 3.0, "log": None, "within": 3.0})
        return Operations(do=(stop,), undo=again)
