"""A playbook as typed models: one workload, the flags of it that may be set, and steps. Knows no kind of step: it asks their classes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WrapValidator

from deployctl.document import Document, fit
from deployctl.document import load as load_document
from deployctl.errors import WordsError, suggestion
from deployctl.fields import AbsolutePath, Filled, Model, Name, Text, carried
from deployctl.flags import Flag, Shape, declare, look_at_all, misspelled
from deployctl.steps.base import Step
from deployctl.steps.registry import KINDS

PHASES = ("prepare", "cutover", "report")  # in this order


def _variable(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text):
        raise WordsError(f"'{text}' is no name of a variable", todo="use letters, digits and '_'; the first no digit")
    return text


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        todo = "the words of a command line are joined by NUL: '\\0'"
        raise WordsError(f"'{text}' is no regular expression: {error}", todo=todo) from error
    return text


def _inherit(value: object, fit_words: Callable[[object], tuple[str, ...]]) -> tuple[str, ...]:
    """`inherit` stands for no words: those of the process that runs."""
    return () if value == "inherit" else fit_words(value)


def _command(words: tuple[str, ...]) -> tuple[str, ...]:
    if not words or not words[0]:
        raise WordsError("there is no program", todo="write the program and its arguments as a list, for example '[python3, train.py]'")
    return words


class MatchModel(Model):
    """How a process is known: a text, words in their order or a regular expression over the command line; and where and whose it is.

    Without one of the three it is known by the command, as when there is no `match`.
    """

    text: Filled | None = None
    words: Annotated[tuple[Filled, ...], Field(min_length=1)] | None = None
    regex: Annotated[Filled, AfterValidator(carried(_pattern))] | None = None
    directory: AbsolutePath | None = None
    user: Filled | None = None


def _match(value: object) -> object:
    """A list is the words of a match."""
    return {"words": value} if isinstance(value, list) else value


def _one_form(value: MatchModel | str | None) -> MatchModel | str | None:
    if isinstance(value, MatchModel) and sum(form is not None for form in (value.text, value.words, value.regex)) > 1:
        raise WordsError("a match has one of text, words and regex", todo="keep one of them; directory and user may stand beside it")
    return value


Match = Annotated[MatchModel | Filled, BeforeValidator(_match), AfterValidator(carried(_one_form))]


class WorkloadModel(Model):
    """The long-running program. `log` is absolute or relative to `directory`; `match` is how it is known if deployctl did not start it.

    An empty command stands for `inherit`: command, directory, environment and user are those of the process that runs.
    """

    name: Name
    directory: AbsolutePath = ""
    command: Annotated[tuple[Text, ...], AfterValidator(carried(_command)), WrapValidator(_inherit)]
    log: Filled | None = None
    match: Match | None = None
    environment: dict[Annotated[Text, AfterValidator(carried(_variable))], Text] = Field(default_factory=dict)
    user: Filled | None = None
    program: Text = ""
    subcommand: Text = ""
    style: Literal["option", "keyval"] = "option"
    wrapper_flags: tuple[Text, ...] = ()


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
        match = self.model.workload.match
        return match.model_dump(exclude_none=True) if isinstance(match, MatchModel) else match

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
            raise WordsError(f"'{name}' is no flag of the playbook", where=where, todo=suggestion(name, names) or "declare it in 'flags'")
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
