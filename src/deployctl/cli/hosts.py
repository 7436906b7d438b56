"""`deployctl hosts check`: whether the targets of the hosts file can be used."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

WHICH = typer.Argument(help="Targets or groups; without one all of the hosts file.", metavar="TARGET", show_default=False)


def register(app: typer.Typer) -> None:
    """Adds the commands below `hosts`."""
    hosts = typer.Typer(help="The hosts file, and what it names.", no_args_is_help=True)
    hosts.callback()(_hosts)
    hosts.command("check")(check)
    app.add_typer(hosts, name="hosts", rich_help_panel="Commands")


def _hosts() -> None:
    pass


def check(
    targets: Annotated[list[str] | None, WHICH] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a target.")] = False,
) -> int:
    """Whether the targets can be used, and whether several operators would share their records. Changes nothing."""
    from deployctl.cli import hosts_check

    return hosts_check.check(targets or [], as_json, os.environ, Path.cwd())
