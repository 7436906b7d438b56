"""stop: ends the workload's process by a ladder of signals."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from deployctl.errors import RefusedError, WordsError, suggestion
from deployctl.fields import AbsolutePath, Duration, Filled, Model, SignalName, carried
from deployctl.steps.base import Opened, Operations, Record, Session, Setting, Step
from deployctl.verdicts import VERDICTS
from deployctl.workload import Rung

To = Literal["main", "top", "ranks", "group", "hold-agent"]


def _verdict(text: str) -> str:
    if text not in VERDICTS:
        raise WordsError(f"'{text}' is no verdict", todo=suggestion(text, VERDICTS))
    return text


Verdicts = Annotated[
    list[Annotated[str, AfterValidator(carried(_verdict))]], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)
]


class RungModel(Model):
    """One signal of a ladder, how long to wait after it, to whom it goes, and by which verdict it is wanted."""

    signal: SignalName
    wait: Duration
    to: To | None = None
    again: bool = False
    only_if: Verdicts | None = None
    unless: Verdicts | None = None


class FreeModel(Model):
    """What must be free after the end before anything else is done."""

    ports: list[Annotated[int, Field(ge=1, le=65535)]] = Field(default_factory=list)
    files: list[AbsolutePath] = Field(default_factory=list)
    gpu: bool = True
    within: Duration = 30.0


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
    to: To = "main"
    extend: Annotated[float, Field(ge=0, le=100)] = 3.0
    protect: list[Filled] = Field(default_factory=lambda: ["*.tmp", "*.part"])
    protect_for: Duration = 600.0
    hurry: bool = False
    strict: bool = False
    cont: bool = False
    respawn: Literal["refuse", "expected"] = "refuse"
    free: FreeModel = Field(default_factory=FreeModel)

    @classmethod
    def expand(cls, value: object) -> object:
        """`stop: [INT 180s, TERM 30s]` is the ladder; the bare word `stop`, and a map without one, have the default one."""
        default = ["INT 180s", "TERM 30s", "KILL 10s"]
        if value is None:
            value = default
        if isinstance(value, str):
            raise WordsError(f"'{value}' is no list of rungs", todo=f"write it as a list: '[{value}]'")
        if isinstance(value, list):
            value = {"ladder": value}
        if isinstance(value, dict) and "ladder" not in value:
            value = {"ladder": default, **value}
        if isinstance(value, dict) and isinstance(value.get("ladder"), list):
            return {**value, "ladder": [rung(item) for item in value["ladder"]]}
        return value

    def rungs(self) -> tuple[Rung, ...]:
        """The ladder as plain data."""
        return tuple(
            Rung(item.signal, item.wait, item.model_dump(exclude_defaults=True, exclude={"signal", "wait"})) for item in self.ladder
        )

    def describe(self) -> dict[str, Any]:
        """The ladder, waits in seconds, and what is not as it is by default."""
        fields = self.model_dump(exclude_defaults=True, exclude={"ladder", "linger"})
        return {"step": self.word, "ladder": [item.as_data() for item in self.rungs()], "linger": self.linger, **fields}

    def admit(self, setting: Setting, opened: Opened, record: Record) -> None:
        """Refuses what the job could not bring to an end: two unrelated matches, a process that a rollback could not start again, one that
        something else would start again, and a word of `to` that would do harm.
        """
        opened.require("process")
        if opened.process is not None and setting.rollback:
            opened.require("capture")
        if opened.tree is None:
            return
        self._refuse_respawn(opened)
        for index, item in enumerate(self.ladder):
            harm = opened.tree["objections"].get(item.to or self.to)
            if harm:
                todo = "leave `to` out: the signal then goes to the main process alone"
                raise RefusedError(harm, where=f"stop: ladder[{index}]: to", todo=todo)
        clock = opened.tree["clock"]
        waits = [item.wait for item in self.ladder if item.signal != "KILL" and (item.to or self.to) not in ("ranks", "hold-agent")]
        if clock is not None and clock < max(waits, default=0.0):
            record("launcher-clock", pid=opened.tree["main"], seconds=clock, wait=max(waits))

    def _refuse_respawn(self, opened: Opened) -> None:
        found = opened.respawn
        if found is None or self.respawn == "expected":
            return
        todo = "stop that first, or say `respawn: expected` in the stop of a playbook without a launch"
        what = f"{found['kind']} '{found['name']}' (pid {found['pid']}) would start it again: {found['how']}"
        raise RefusedError(what, where="stop", todo=todo)

    def preview(self, gathered: Any, session: Session, setting: Setting, opened: Opened) -> dict[str, Any] | None:
        """The tree and who of it gets each signal, when it is more than one process."""
        tree = opened.tree
        if tree is None:
            return None
        to = {index: tree["to"][item.to or self.to] for index, item in enumerate(self.ladder) if item.signal != "KILL"}
        return {"tree": tree["members"], "main": tree["main"], "pids": to, "clock": tree["clock"]}

    def compile(self, setting: Setting, piece: Any) -> Operations:
        """The stop; and what undoes it: the process that ran before, as it ran."""
        fields = self.model_dump(exclude={"ladder"})
        stop = {"op": "stop", "who": "before", **fields, "ladder": [item.as_data() for item in self.rungs()]}
        again = ({"op": "launch", "as": "before"}, {"op": "check", "alive": 3.0, "log": None, "within": 3.0})
        return Operations(do=(stop,), undo=again)
