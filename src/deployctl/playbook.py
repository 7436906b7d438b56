"""A playbook as typed models: one workload, the flags of it that may be set, and steps. Knows no kind of step: it asks their classes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from deployctl.document import Document, fit
from deployctl.document import load as load_document
from deployctl.errors import WordsError, suggestion
from deployctl.fields import Filled, Model, Text
from deployctl.flags import Flag, Shape, declare, look_at_all, misspelled
from deployctl.steps.base import Step
from deployctl.steps.registry import KINDS
from deployctl.workload_model import MatchModel, WorkloadModel

PHASES = ("prepare", "cutover", "report")  # in this order


class FlagModel(Model):
    """A flag of the workload that may be set on the command line (docs/flags.md). `declare` looks at what the types here let pass."""

    type: Literal["int", "float", "str", "bool", "choice", "path", "duration"] = "str"
    help: Text = ""
    min: Text | None = None
    max: Text | None = None
    choices: tuple[Text, ...] | None = None
    default: Any = None
    option: Text | None = None
    spelling: Text | None = None
    also: tuple[Text, ...] = ()
    off: Text | None = None
    repeat: Literal["once", "replace", "append"] = "once"
    nargs: Text | None = None
    env: Text | None = None
    style: Literal["option", "keyval"] | None = None
    subcommand: Text | None = None
    newest: Filled | None = None
    complete: tuple[Text, ...] = ()


class Playbook(Model):
    """A playbook; `steps` are instances of the kinds in `steps/`."""

    description: Text = ""
    workload: WorkloadModel
    flags: dict[str, FlagModel] = Field(default_factory=dict)
    steps: tuple[Step, ...]
    on_failure: Literal["rollback", "leave"] = "rollback"


@dataclass(frozen=True)
class LoadedPlaybook:
    """A playbook with its file: `name` is the file's without its ending; `document` knows the line of everything."""

    name: str
    path: Path
    document: Document
    model: Playbook
    flags: tuple[Flag, ...]

    @property
    def match(self) -> str | dict[str, Any] | None:
        """How the workload's process is known, as the agent reads it."""
        return self.model.workload.known_by

    @property
    def shape(self) -> Shape:
        """What the playbook says of its command line."""
        workload = self.model.workload
        return Shape(self.flags, workload.wrapper_flags, workload.program, workload.subcommand, workload.style)


def load(path: Path) -> LoadedPlaybook:
    """The playbook of a file, whole and without contradictions. Raises WordsError, with file and line."""
    document = load_document(path)
    items = document.part("steps")
    if not isinstance(items, list):
        fit(document, Playbook)  # says what is wrong
    head = fit(document, Playbook, value={**document.data, "steps": ()})
    _look_at_workload(document, head.workload)
    flags = tuple(_flag(document, name) for name in head.flags)
    _look_at_flags(document, head.workload, flags)
    model = head.model_copy(update={"steps": tuple(_step(document, index) for index in range(len(items)))})
    _look_at_steps(document, model)
    return LoadedPlaybook(path.stem, path, document, model, flags)


def _flag(document: Document, name: str) -> Flag:
    try:
        return declare(name, document.part("flags", name))
    except WordsError as error:
        raise document.placed(WordsError(f"flags: {name}: {error.what}", todo=error.todo), "flags", name) from error


def _look_at_workload(document: Document, workload: WorkloadModel) -> None:
    """Raises WordsError for a workload that is not whole, or that says what it also inherits (`command: inherit`)."""
    where = document.where("workload")
    if workload.command and not workload.directory:
        raise WordsError("workload: 'directory' is missing", where=where, todo="add 'directory: …'")
    if workload.command:
        return
    match = workload.match
    if match is None or (isinstance(match, MatchModel) and not (match.text or match.words or match.regex)):
        todo = "add 'match: …', by which the process is found"
        raise WordsError("workload: 'command: inherit' wants a 'match'", where=document.where("workload", "command"), todo=todo)
    for key in ("directory", "user"):
        if getattr(workload, key):
            what = f"workload: {key}: it is inherited, as the command is"
            raise WordsError(what, where=document.where("workload", key), todo="remove it, or write the command out")


def _look_at_flags(document: Document, workload: WorkloadModel, flags: tuple[Flag, ...]) -> None:
    """Raises WordsError for flags that cannot stand together, or that the command has no place for."""
    try:
        look_at_all(flags)
    except WordsError as error:
        raise document.placed(WordsError(f"flags: {error.where}: {error.what}", todo=error.todo), "flags", error.where) from error
    names = [flag.name for flag in flags]
    for index, name in enumerate(workload.wrapper_flags):
        if name not in names:
            where = document.where("workload", "wrapper_flags", index)
            raise WordsError(f"'{name}' is no flag of the playbook", where=where, todo=suggestion(name, names, "declare it in 'flags'"))
    if workload.program and workload.command and workload.program not in workload.command:
        where = document.where("workload", "program")
        raise WordsError(f"the command has no word '{workload.program}'", where=where, todo="name the one before the flags")
    shape = Shape(flags, workload.wrapper_flags, style=workload.style)
    for flag in flags:
        fault = misspelled(flag, shape)
        if fault is not None:
            raise document.placed(WordsError(f"flags: {flag.name}: {fault.what}", todo=fault.todo), "flags", flag.name)


def _step(document: Document, index: int) -> Step:
    item = document.part("steps", index)
    entries = {item: None} if isinstance(item, str) else item
    if not isinstance(entries, dict) or len(entries) != 1:
        several = isinstance(entries, dict) and entries
        what = f"a step has one word, not {len(entries)}: {', '.join(entries)}" if several else "this is no step"
        todo = "write '- launch' or '- push: {…}'; fields stand deeper than the step's word"
        raise WordsError(f"steps[{index}]: {what}", where=document.where("steps", index), todo=todo)
    [(word, value)] = entries.items()
    if word not in KINDS:
        raise WordsError(f"'{word}' is no kind of step", where=document.where("steps", index, word), todo=suggestion(word, KINDS))
    kind = KINDS[word]
    try:
        fields = kind.expand(value)
    except WordsError as error:
        raise document.placed(WordsError(f"{word}: {error.what}", todo=error.todo), "steps", index, word) from error
    return fit(document, kind, ("steps", index, word), fields)


def _look_at_steps(document: Document, model: Playbook) -> None:
    """Raises WordsError for steps that cannot stand together."""
    if not model.steps:
        raise WordsError("steps: the list is empty", where=document.where("steps"), todo="write at least one, for example '- launch'")
    for index, step in enumerate(model.steps):
        where = document.where("steps", index, step.word)
        if step.needs_log and model.workload.log is None:
            raise WordsError(f"{step.word}: the workload has no log", where=where, todo="add to workload: 'log: logs/NAME.log'")
        if step.needs and step.needs not in {earlier.word for earlier in model.steps[:index]}:
            raise WordsError(f"{step.word}: there is no '{step.needs}' before it", where=where, todo=f"write '- {step.needs}' above it")
        for place, earlier in enumerate(model.steps[:index]):
            line = document.line("steps", place, earlier.word)
            if step.once and earlier.word == step.word:
                raise WordsError(f"{step.word}: it stands here already, in line {line}", where=where, todo="keep one of them")
            if PHASES.index(step.phase) < PHASES.index(earlier.phase):
                what = f"{step.word}: a {step.phase} step cannot stand after '{earlier.word}', a {earlier.phase} step"
                raise WordsError(what, where=where, todo=f"move it before line {line}")
