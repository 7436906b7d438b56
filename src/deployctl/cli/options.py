"""The options of every command that makes runs, as typer reads them from a signature, and what they come to."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import typer

Options = Mapping[str, tuple[Any, Any]]  # parameter -> type, typer's option

HOW: Options = {
    "plan": (bool, typer.Option("--plan", help="Print what would happen and what runs now; change nothing.")),
    "quiet": (bool, typer.Option("--quiet", "-q", help="Print only what went wrong (for nights).")),
    "wait": (str | None, typer.Option("--wait", metavar="DURATION", help="Wait that long for another run or a backup, for example 10m.")),
    "as_json": (bool, typer.Option("--json", help="Print the events as JSON lines.")),
}


@dataclass(frozen=True)
class How:
    """How a run is made and shown: `wait` is a duration as it was typed, None for the usual patience."""

    plan: bool
    quiet: bool
    wait: str | None
    as_json: bool

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> How:
        """What the options of a call come to."""
        return cls(**{parameter: given[parameter] for parameter in HOW})


def targets(help_: str) -> inspect.Parameter:
    """The targets of a command."""
    argument = typer.Argument(help=help_, metavar="TARGET", show_default=False)
    return inspect.Parameter("targets", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Annotated[list[str], argument])


def parameters(options: Options) -> list[inspect.Parameter]:
    """The options as parameters: False or None where they are not given."""
    return [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False if kind is bool else None, annotation=Annotated[kind, option])
        for name, (kind, option) in options.items()
    ]
