"""A playbook is a command: its declared flags are typed options, its words are targets."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from deployctl import flags, playbooks
from deployctl.flags import Flag

PANEL = "Flags of the workload"
OWN = {
    "plan": (bool, typer.Option("--plan", help="Print what would happen and what runs now; change nothing.")),
    "quiet": (bool, typer.Option("--quiet", "-q", help="Print only what went wrong (for nights).")),
    "wait": (str | None, typer.Option("--wait", metavar="DURATION", help="Wait that long for another run's lock, for example 10m.")),
    "as_json": (bool, typer.Option("--json", help="Print the events as JSON lines.")),
}  # deployctl's own options: parameter -> type, option


def register(app: typer.Typer, environment: Mapping[str, str], cwd: Path, extra: tuple[str, ...]) -> None:
    """One command for each playbook that is found. A damaged one is a command too: calling it tells the fault."""
    for name, path in playbooks.find(playbooks.search_path(environment, cwd)).items():
        peek = playbooks.peek(path)
        help_ = f"(faulty: {peek.fault})" if peek.fault else peek.description or f"The playbook {path}."
        app.command(name, help=plain(help_), rich_help_panel="Playbooks")(_command(path, peek, environment, cwd, extra))


def plain(text: str) -> str:
    """Text of a playbook in a help page, where brackets would be markup."""
    return text.replace("[", "\\[")


def _command(path: Path, peek: playbooks.Peek, environment: Mapping[str, str], cwd: Path, extra: tuple[str, ...]) -> Callable[..., int]:
    declared = {f"flag_{number}": flag for number, flag in enumerate(flags.declared(peek.flags))}

    def call(**given: Any) -> int:
        from deployctl.cli import run

        values = {flag.name: _value(flag, given[parameter]) for parameter, flag in declared.items() if given[parameter] is not None}
        own = {parameter: given[parameter] for parameter in OWN}
        return run.playbook(path, given["targets"], values, extra, environment, cwd, **own)

    call.__signature__ = inspect.Signature([_targets(), *(_option(*item) for item in declared.items()), *_own()])  # type: ignore[attr-defined]
    return call


def _value(flag: Flag, given: Any) -> Any:
    return given if flag.type == "bool" else flag.parse(given)


def _targets() -> inspect.Parameter:
    argument = typer.Argument(help="Names of targets or groups in the hosts file.", metavar="TARGET...", show_default=False)
    return inspect.Parameter("targets", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Annotated[list[str], argument])


def _option(parameter: str, flag: Flag) -> inspect.Parameter:
    """The option of a flag. Text becomes a value in Flag.parse, so the option takes text; its metavar tells the type."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    if flag.type == "bool":
        option = typer.Option(f"--{flag.name}/--no-{flag.name}", help=plain(flag.help), rich_help_panel=PANEL, show_default=False)
        return inspect.Parameter(parameter, keyword, default=None, annotation=Annotated[bool | None, option])
    option = typer.Option(f"--{flag.name}", help=plain(_help(flag)), metavar=_metavar(flag), rich_help_panel=PANEL, show_default=False)
    return inspect.Parameter(parameter, keyword, default=None, annotation=Annotated[str | None, option])


def _metavar(flag: Flag) -> str:
    return "|".join(flag.choices) if flag.choices else flag.type.upper()


def _help(flag: Flag) -> str:
    """The declared help with bounds and default, as far as there are any."""
    notes = []
    if flag.min is not None or flag.max is not None:
        notes.append(f"{'' if flag.min is None else f'{flag.min:g}'}..{'' if flag.max is None else f'{flag.max:g}'}")
    if flag.default is not None:
        notes.append(f"default {flag.default}")
    return f"{flag.help} [{'; '.join(notes)}]".strip() if notes else flag.help


def _own() -> list[inspect.Parameter]:
    return [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False if kind is bool else None, annotation=Annotated[kind, option])
        for name, (kind, option) in OWN.items()
    ]
