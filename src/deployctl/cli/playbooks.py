"""A playbook is a command: its declared flags are typed options, its words are targets."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from deployctl import document, flags, playbooks
from deployctl.cli.options import HOW, How, Options, parameters, targets
from deployctl.errors import WordsError, suggestion
from deployctl.flags import Flag

PANEL = "Flags of the workload"
_BRACKET = re.compile(r"(\\*)\[((?:[a-z#/@][^\[]*?\])?)")  # backslashes, and the rest of what would be a tag
_EMOJI = re.compile(r":(?=\S+?:)")
OWN: Options = {
    **HOW,
    "keep": (bool, typer.Option("--keep-flags", help="Flags that are not given have the values of the last launch.")),
    "unset": (list[str] | None, typer.Option("--unset", metavar="FLAG", help="Take a flag away; may be given several times.")),
}
OPTIONS = ("plan", "quiet", "wait", "json", "keep-flags", "unset", "help")


def register(app: typer.Typer, environment: Mapping[str, str], cwd: Path, extra: tuple[str, ...], taken: set[str]) -> list[Path]:
    """One command for each playbook that is found; those with a name that is taken are the answer.

    A damaged playbook is a command too: calling it tells the fault.
    """
    passed = []
    for name, path in playbooks.find(playbooks.search_path(environment, cwd)).items():
        if name in taken:
            passed.append(path)
            continue
        peek = playbooks.peek(path)
        help_ = f"(faulty: {peek.fault})" if peek.fault else peek.description or f"The playbook {path}."
        app.command(name, help=plain(help_), rich_help_panel="Playbooks")(_command(path, peek, environment, cwd, extra))
    return passed


def plain(text: str) -> str:
    """Text of a playbook in a help page: what would be markup, an emoji or an order to the terminal is shown as it is written."""
    text = "".join(character if character.isprintable() or character == "\n" else " " for character in text)
    text = _BRACKET.sub(
        lambda found: found[1] * (2 if found[2] else 1) + ("\\" if found[1] or found[2] else "") + "[" + (found[2] or ""), text
    )
    return _EMOJI.sub(":[none][/none]", text)


def _command(path: Path, peek: playbooks.Peek, environment: Mapping[str, str], cwd: Path, extra: tuple[str, ...]) -> Callable[..., int]:
    all_flags = flags.declared(peek.flags)
    declared = {f"flag_{number}": flag for number, flag in enumerate(all_flags) if not _taken(flag)}
    clash = [flag for flag in all_flags if _taken(flag)]

    def call(**given: Any) -> int:
        from deployctl.cli import run

        if clash:
            raise _clash(path, clash[0])
        values = {flag.name: _value(flag, given[parameter]) for parameter, flag in declared.items() if given[parameter] not in (None, [])}
        unset = _unset(given["unset"] or [], values, all_flags)
        return run.playbook(path, given["targets"], values, extra, environment, cwd, How.of(given), keep=given["keep"], unset=unset)

    words = [targets("Names of targets or groups in the hosts file."), *(_option(*item) for item in declared.items()), *parameters(OWN)]
    call.__signature__ = inspect.Signature(words)  # type: ignore[attr-defined]
    return call


def _taken(flag: Flag) -> bool:
    """Whether an option of the flag would be one of deployctl's own."""
    return flag.called in OPTIONS or (flag.type == "bool" and f"no-{flag.called}" in OPTIONS)


def _clash(path: Path, flag: Flag) -> WordsError:
    """What is said of a flag with the name of an option of deployctl's, with its line."""
    where = document.load(path).where("flags", flag.name)
    todo = f"give it another one here, for example 'option: train-{flag.called}'; the program's own stays '--{flag.name}'"
    return WordsError(f"flags: {flag.name}: '--{flag.called}' is an option of deployctl's own", where=where, todo=todo)


def _value(flag: Flag, given: Any) -> Any:
    if flag.type == "bool":
        return given
    return flag.read(given if flag.several else [given])


def _unset(named: list[str], values: Mapping[str, Any], known: tuple[Flag, ...]) -> tuple[str, ...]:
    """The names of the flags to take away. Raises WordsError for one that is not declared, or given in the same breath."""
    names = {flag.called: flag.name for flag in known} | {flag.name: flag.name for flag in known}
    for word in named:
        if word.lstrip("-") not in names:
            raise WordsError(f"'{word}' is no flag of the playbook", where="--unset", todo=suggestion(word.lstrip("-"), names))
        if names[word.lstrip("-")] in values:
            raise WordsError(f"'{word}' is given and unset", where="--unset", todo="do one of the two")
    return tuple(names[word.lstrip("-")] for word in named)


def _option(parameter: str, flag: Flag) -> inspect.Parameter:
    """The option of a flag. Text becomes a value in Flag.parse, so the option takes text; its metavar tells the type."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    if flag.type == "bool":
        option = typer.Option(f"--{flag.called}/--no-{flag.called}", help=plain(_help(flag)), rich_help_panel=PANEL, show_default=False)
        return inspect.Parameter(parameter, keyword, default=None, annotation=Annotated[bool | None, option])
    option = typer.Option(f"--{flag.called}", help=plain(_help(flag)), metavar=_metavar(flag), rich_help_panel=PANEL, show_default=False)
    kind = list[str] | None if flag.several else str | None
    return inspect.Parameter(parameter, keyword, default=None, annotation=Annotated[kind, option])


def _metavar(flag: Flag) -> str:
    return "|".join(flag.choices) if flag.choices else flag.type.upper()


def _help(flag: Flag) -> str:
    """The declared help with bounds and default, as far as there are any."""
    notes = []
    if flag.min is not None or flag.max is not None:
        notes.append(f"{'' if flag.min is None else f'{flag.min:g}'}..{'' if flag.max is None else f'{flag.max:g}'}")
    if flag.default is not None:
        notes.append(f"default {' '.join(flag.written(flag.default))}")
    if flag.several:
        notes.append("once for each value")
    return f"{flag.help} [{'; '.join(notes)}]".strip() if notes else flag.help
