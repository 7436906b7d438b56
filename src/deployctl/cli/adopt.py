"""`deployctl adopt`: a first playbook from a process that runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

MATCH = typer.Option("--match", metavar="TEXT", help="Its program's, script's or module's name.", show_default=False)
NAME = typer.Option("--name", metavar="NAME", help="The workload's and the playbook's name; as a rule the script's.", show_default=False)
TO = typer.Option("--to", metavar="FILE", help="Where to write it; '-' prints it. As a rule playbooks/NAME.yaml.", show_default=False)


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("adopt", rich_help_panel="Commands")(adopt)


def adopt(
    target: Annotated[str, typer.Argument(help="The name of a target in the hosts file.", metavar="TARGET", show_default=False)],
    match: Annotated[str, MATCH],
    name: Annotated[str | None, NAME] = None,
    to: Annotated[str | None, TO] = None,
) -> int:
    """Write a first playbook from a process that runs: its command, directory, user and log. Changes nothing in the target."""
    from deployctl.cli import adopting

    return adopting.adopt(target, match, name, to, os.environ, Path.cwd())
