"""`deployctl why`: the reason why a process does not stop."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("why", rich_help_panel="Commands")(why)


def why(
    target: Annotated[str | None, typer.Argument(help="TARGET or TARGET:WORKLOAD.", metavar="[TARGET]", show_default=False)] = None,
    pid: Annotated[int | None, typer.Option("--pid", metavar="N", min=1, help="This process, as the target numbers it.")] = None,
    match: Annotated[str | None, typer.Option("--match", metavar="TEXT", help="The process of this program, script or module.")] = None,
    local: Annotated[bool, typer.Option("--local", help="Look on this machine; needs no hosts file.")] = False,
    since: Annotated[
        Path | None, typer.Option("--since", metavar="FILE", help="An earlier answer of --json: how it was before the signals.")
    ] = None,
    after: Annotated[str | None, typer.Option("--after", metavar="INT,TERM", help="The signals that were sent since then.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on one line.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Print all the evidence.")] = False,
) -> int:
    """Say why a process does not stop: what it does, which signal it would hear, what to do. Sends none, changes nothing."""
    from deployctl.cli import whys

    asked = whys.Asked(target, pid, match, local, since, after)
    return whys.show(asked, as_json, verbose, os.environ, Path.cwd())
