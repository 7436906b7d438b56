"""Commands about runs that are under way or past: attach, history, cancel, resume."""

from __future__ import annotations

from typing import Annotated

import typer

RUN = typer.Argument(help="The run's id; without it the newest run.", metavar="[RUN]", show_default=False)
ON = typer.Option("--on", metavar="TARGET", help="Where it runs; without it the journal of this machine knows.")
JSON = typer.Option("--json", help="Print JSON lines.")


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    for command in (attach, history, cancel, resume):
        app.command(command.__name__, rich_help_panel="Commands")(command)


def attach(
    run: Annotated[str | None, RUN] = None,
    on: Annotated[str | None, ON] = None,
    new: Annotated[bool, typer.Option("--new", help="Show only what this machine has not seen yet.")] = False,
    as_json: Annotated[bool, JSON] = False,
) -> int:
    """Follow a run: from its start, until its end, whoever began it from where."""
    from deployctl.cli import past

    return past.attach(run, on, new, as_json)


def history(
    on: Annotated[str, typer.Option("--on", metavar="TARGET", help="The target whose runs are listed.", show_default=False)],
    as_json: Annotated[bool, JSON] = False,
) -> int:
    """List the runs that a target knows, whoever ran them from where."""
    from deployctl.cli import past

    return past.history(on, as_json)


def cancel(run: Annotated[str | None, RUN] = None, on: Annotated[str | None, ON] = None) -> int:
    """Take back a run that is under way: no further signal, no new files; what ran before runs in the end."""
    from deployctl.cli import past

    return past.cancel(run, on)


def resume(run: Annotated[str | None, RUN] = None, on: Annotated[str | None, ON] = None, as_json: Annotated[bool, JSON] = False) -> int:
    """Bring a run to its end whose job was killed (container out of memory, stopped, node rebooted)."""
    from deployctl.cli import past

    return past.resume(run, on, as_json)
