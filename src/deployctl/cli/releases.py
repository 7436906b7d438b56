"""Commands about what a target keeps: releases, forget."""

from __future__ import annotations

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    for command in (releases, forget):
        app.command(command.__name__, rich_help_panel="Commands")(command)


def releases(
    targets: Annotated[list[str], typer.Argument(help="TARGET or TARGET:WORKLOAD.", metavar="TARGET", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a target.")] = False,
) -> int:
    """List what is kept for going back, and the live files that another hand has changed."""
    from deployctl.cli import kept

    return kept.releases(targets, as_json)


def forget(word: Annotated[str, typer.Argument(help="Whose records go.", metavar="TARGET:WORKLOAD", show_default=False)]) -> int:
    """Remove all that a target keeps of a workload that does not run: records, releases, staging."""
    from deployctl.cli import kept

    return kept.forget(word)
