"""`deployctl stop` and `deployctl start`: one half of the workload's playbook."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

TARGETS = typer.Argument(help="TARGET or TARGET:WORKLOAD.", metavar="TARGET...", show_default=False)
PLAYBOOK = typer.Option("--playbook", metavar="NAME", help="Whose steps are taken, when several playbooks name the workload.")


def register(app: typer.Typer, extra: tuple[str, ...]) -> None:
    """Adds the commands; `extra` are the words after `--`."""
    app.command("stop", help="Stop the workload by the ladder of its playbook, and do nothing else.", rich_help_panel="Commands")(
        _command("stop", extra)
    )
    app.command("start", help="Launch and check the workload as its playbook says, unless it runs.", rich_help_panel="Commands")(
        _command("start", extra)
    )


def _command(which: str, extra: tuple[str, ...]) -> Callable[..., int]:
    def call(
        targets: Annotated[list[str], TARGETS],
        playbook: Annotated[str | None, PLAYBOOK] = None,
        plan: Annotated[bool, typer.Option("--plan", help="Print what would happen and what runs now; change nothing.")] = False,
        quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only what went wrong (for nights).")] = False,
        wait: Annotated[str | None, typer.Option("--wait", metavar="DURATION", help="Wait that long for another run's lock.")] = None,
        as_json: Annotated[bool, typer.Option("--json", help="Print the events as JSON lines.")] = False,
    ) -> int:
        from deployctl.cli import halves

        own = {"plan": plan, "quiet": quiet, "wait": wait, "as_json": as_json}
        return halves.half(which, targets, playbook, extra, os.environ, Path.cwd(), **own)  # type: ignore[arg-type]

    return call
