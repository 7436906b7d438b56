"""`deployctl stop`, `start` and `rollback`: a part of the workload's playbook."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

TARGETS = typer.Argument(help="TARGET or TARGET:WORKLOAD.", metavar="TARGET...", show_default=False)
PLAYBOOK = typer.Option("--playbook", metavar="NAME", help="Whose steps are taken, when several playbooks name the workload.")

PLAN = typer.Option("--plan", help="Print what would happen and what runs now; change nothing.")
QUIET = typer.Option("--quiet", "-q", help="Print only what went wrong (for nights).")
WAIT = typer.Option("--wait", metavar="DURATION", help="Wait that long for another run's lock.")
JSON = typer.Option("--json", help="Print the events as JSON lines.")


def register(app: typer.Typer, extra: tuple[str, ...]) -> None:
    """Adds the commands; `extra` are the words after `--`."""
    app.command("stop", help="Stop the workload by the ladder of its playbook, and do nothing else.", rich_help_panel="Commands")(
        _command("stop", extra)
    )
    app.command("start", help="Launch and check the workload as its playbook says, unless it runs.", rich_help_panel="Commands")(
        _command("start", extra)
    )
    app.command("rollback", rich_help_panel="Commands")(rollback)


def _command(which: str, extra: tuple[str, ...]) -> Callable[..., int]:
    def call(
        targets: Annotated[list[str], TARGETS],
        playbook: Annotated[str | None, PLAYBOOK] = None,
        plan: Annotated[bool, PLAN] = False,
        quiet: Annotated[bool, QUIET] = False,
        wait: Annotated[str | None, WAIT] = None,
        as_json: Annotated[bool, JSON] = False,
    ) -> int:
        from deployctl.cli import halves

        own = {"plan": plan, "quiet": quiet, "wait": wait, "as_json": as_json}
        return halves.half(which, targets, playbook, extra, os.environ, Path.cwd(), **own)  # type: ignore[arg-type]

    return call


def rollback(
    targets: Annotated[list[str], TARGETS],
    to: Annotated[str | None, typer.Option("--to", metavar="RUN", help="That run; without it the launch before the last one.")] = None,
    playbook: Annotated[str | None, PLAYBOOK] = None,
    plan: Annotated[bool, PLAN] = False,
    quiet: Annotated[bool, QUIET] = False,
    wait: Annotated[str | None, WAIT] = None,
    as_json: Annotated[bool, JSON] = False,
) -> int:
    """Go back to an earlier run: its files, and its command line. It is a run itself, and can be rolled back too."""
    from deployctl.cli import halves

    own = {"plan": plan, "quiet": quiet, "wait": wait, "as_json": as_json}
    return halves.rollback(targets, to, playbook, os.environ, Path.cwd(), **own)  # type: ignore[arg-type]
