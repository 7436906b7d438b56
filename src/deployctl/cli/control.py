"""`deployctl stop`, `start` and `rollback`: a part of the workload's playbook."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from deployctl.cli.options import HOW, How, Options, parameters, targets

PLAYBOOK: Options = {
    "playbook": (
        str | None,
        typer.Option("--playbook", metavar="NAME", help="Whose steps are taken, when several playbooks name the workload."),
    )
}
TO: Options = {"to": (str | None, typer.Option("--to", metavar="RUN", help="That run; without it the launch before the last one."))}
HELP = {
    "stop": "Stop the workload by the ladder of its playbook, and do nothing else.",
    "start": "Launch and check the workload as its playbook says, unless it runs.",
    "rollback": "Go back to an earlier run: its files, and its command line. It is a run itself, and can be rolled back too.",
}


def register(app: typer.Typer, extra: tuple[str, ...]) -> None:
    """Adds the commands; `extra` are the words after `--`."""

    def half(which: str) -> Callable[..., int]:
        def call(targets: list[str], playbook: str | None, **given: Any) -> int:
            from deployctl.cli import halves

            return halves.half(which, targets, playbook, extra, os.environ, Path.cwd(), How.of(given))

        return call

    def rollback(targets: list[str], playbook: str | None, to: str | None, **given: Any) -> int:
        from deployctl.cli import halves

        return halves.rollback(targets, to, playbook, os.environ, Path.cwd(), How.of(given))

    _add(app, "stop", half("stop"), PLAYBOOK)
    _add(app, "start", half("start"), PLAYBOOK)
    _add(app, "rollback", rollback, {**TO, **PLAYBOOK})


def _add(app: typer.Typer, name: str, call: Callable[..., int], own: Options) -> None:
    signature = inspect.Signature([targets("TARGET or TARGET:WORKLOAD."), *parameters({**own, **HOW})])
    call.__signature__ = signature  # type: ignore[attr-defined]
    app.command(name, help=HELP[name], rich_help_panel="Commands")(call)
