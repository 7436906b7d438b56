"""What every kind of step is: YAML fields (the model), `describe`, `prepare`, `compile`. A step keeps no state.

A step knows no transport and no other step. `prepare` talks with the agent and returns its own frozen piece of Facts;
`compile` turns the setting and that piece into operations, and connects to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from deployctl.errors import RefusedError
from deployctl.fields import Model
from deployctl.workload import Rung, Workload

Record = Callable[..., None]  # record("staged", files=2, …): an event of the run
Operation = dict[str, Any]


class Session(Protocol):
    """What a step needs of a target: ask the agent one thing, bring bytes or one file into the target."""

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        """The agent's answer to one operation of the session. Raises DeployError."""

    def feed(self, op: str, pieces: Iterable[bytes], **fields: Any) -> dict[str, Any]:
        """The agent's answer to an operation that takes bytes, which are made piece by piece. Raises DeployError."""

    def put(self, source: Path, destination: str, progress: Callable[[int], None] | None = None) -> None:
        """A new private file in the target with the bytes of `source`. Raises DeployError."""


class HostFacts(Protocol):
    """What the host of a container said of it before it was entered."""

    @property
    def volumes(self) -> Mapping[str, str]:
        """Where its file systems lie, by key: `STORAGE:NAME`, or a path of the host for what is bound in."""

    @property
    def storages(self) -> Mapping[str, str]:
        """The kinds of the storages by name."""

    @property
    def writable(self) -> bool:
        """Whether its configuration can be changed: the node has a quorum."""


class Container(Protocol):
    """What a step can do with the container itself, through its host."""

    vmid: int

    def snapshot(self, name: str, description: str) -> None:
        """Makes a snapshot. Raises RefusedError where there can be none, else DeployError."""

    def snapshots(self) -> Sequence[str]:
        """The names of its snapshots, the oldest first. Raises DeployError."""

    def drop(self, snapshot: str) -> None:
        """Removes a snapshot. Raises DeployError."""


@dataclass(frozen=True)
class Setting:
    """What a plan says to each of its steps: the run, the workload with its new command, where relative sources start."""

    run: str
    workload: Workload
    sources: Path
    ladder: tuple[Rung, ...]
    rollback: bool


@dataclass(frozen=True)
class Opened:
    """What the agent found when the workload was locked.

    process is a Seen (docs/architecture.md section 6) or None; program and old_program are {path, interpreter, prefix, version} of the
    new command and of the running process, or None where they could not be found; tree and respawn are what agent/launchers.py and
    agent/respawn.py say of the running process, or None; faults are what a step must hear of that builds on the process or the program;
    environment is {lost, changed}: names that the running process has and the new one has not, or has with another value; container is
    what the host said, None where the target is no container.
    """

    process: Mapping[str, Any] | None
    program: Mapping[str, Any] | None
    old_program: Mapping[str, Any] | None
    faults: Mapping[str, Mapping[str, Any]]
    tree: Mapping[str, Any] | None = None
    respawn: Mapping[str, Any] | None = None
    environment: Mapping[str, Any] = field(default_factory=dict)
    container: HostFacts | None = None

    def require(self, fact: str) -> None:
        """Raises RefusedError when the fact ("process", "program", "capture", "interpreter") was found to be at fault."""
        fault = self.faults.get(fact)
        if fault is not None:
            raise RefusedError(fault["what"], where=fault.get("where", ""), todo=fault.get("todo", ""))


@dataclass(frozen=True)
class Operations:
    """What a step compiles to. `undo` is done, steps in reverse order, when a later operation fails."""

    do: tuple[Operation, ...] = ()
    undo: tuple[Operation, ...] = ()


class Step(Model):
    """One line of a playbook."""

    word: ClassVar[str]
    phase: ClassVar[str]  # "prepare", "cutover" or "report": where the step acts
    needs_log: ClassVar[bool] = False  # whether the workload must name a log
    once: ClassVar[bool] = False  # whether a playbook may hold the step once only
    needs: ClassVar[str] = ""  # the word of a step that must stand before it

    @classmethod
    def expand(cls, value: object) -> object:
        """The fields that a shorthand stands for: `- launch` and `- stop: [INT 180s]` have one; a map stands for itself."""
        return {} if value is None else value

    def describe(self) -> dict[str, Any]:
        """The step as data, for `--plan`."""
        return {"step": self.word, **self.model_dump(by_alias=True, exclude_defaults=True)}

    def gather(self, setting: Setting) -> Any:
        """What the step needs of the controller's side, before anything is contacted. Raises WordsError or RefusedError."""
        return None

    def admit(self, setting: Setting, opened: Opened, record: Record) -> None:
        """Refuses, before any step has prepared anything, what the first look shows to be impossible. Raises RefusedError."""

    def preview(self, gathered: Any, session: Session, setting: Setting, opened: Opened) -> dict[str, Any] | None:
        """What `prepare` would find, without a trace in the target; more for `describe`. Raises DeployError as `prepare` would."""
        return None

    def prepare(self, gathered: Any, session: Session, setting: Setting, opened: Opened, record: Record) -> Any:
        """Looks, stages or verifies in the target, where nothing live is touched; returns the step's piece of Facts. Raises DeployError."""
        return None

    def seal(self, container: Container, setting: Setting, record: Record) -> None:
        """Acts through the container's host, last of all before the job is sent; there is one to send. Raises DeployError."""

    def after(self, container: Container, setting: Setting, record: Record) -> None:
        """Acts through the container's host once the run has succeeded; what goes wrong is told and changes nothing. Raises nothing."""

    def compile(self, setting: Setting, piece: Any) -> Operations:
        """The operations of the job. Connects to nothing."""
        return Operations()
