"""`deployctl status`: what runs, with which flags, since when, by which run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("status", rich_help_panel="Commands")(status)


def status(
    targets: Annotated[list[str], typer.Argument(help="TARGET or TARGET:WORKLOAD.", metavar="TARGET", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a target.")] = False,
) -> int:
    """What runs on the targets: pid, flags, since when, by which run. Takes no lock and changes nothing."""
    from deployctl.cli import statuses

    return statuses.show(targets, as_json, os.environ, Path.cwd())
