"""The command `deployctl`: its own commands, one for each playbook in the search path, and what every error ends with."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from deployctl import __version__
from deployctl.cli import adopt, control, demo, hosts, playbooks, releases, runs, status, why
from deployctl.errors import DeployError

HELP = """Deploys to and restarts long-running programs in Proxmox containers, on servers and here.

Each playbook in ./playbooks (or $DEPLOYCTL_PLAYBOOKS, or the user's configuration) is a command of its own."""


def build(extra: tuple[str, ...], quiet: bool = False) -> typer.Typer:
    """The application, with the playbooks that are found now; `extra` are the words after `--`; `quiet`: without notes."""
    app = typer.Typer(help=HELP, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
    app.callback()(_main)
    for part in (status, why, adopt, runs, releases, hosts, demo):
        part.register(app)
    control.register(app, extra)
    own = {command.name or "" for command in app.registered_commands} | {group.name or "" for group in app.registered_groups}
    for path in playbooks.register(app, os.environ, Path.cwd(), extra, own):
        if quiet:
            continue
        print(f"note: {path} has the name of a command of deployctl and is passed over; rename it", file=sys.stderr)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        print(f"deployctl {__version__}")
        raise typer.Exit(0)


VERSION = typer.Option("--version", callback=_version, is_eager=True, help="Show the version and leave.")


def _main(version: Annotated[bool, VERSION] = False) -> None:
    pass


def call(words: list[str]) -> int:
    """The exit status of the words (docs/exit-status.md)."""
    try:
        before, extra = _split(words)
        return int(build(extra, quiet=bool({"--quiet", "-q"} & set(before)))(before, prog_name="deployctl", standalone_mode=False) or 0)
    except typer.Exit as leave:
        return leave.exit_code
    except typer.TyperException as error:
        return _wrong_words(error, words)
    except DeployError as error:
        return _say(error)


def _split(words: list[str]) -> tuple[list[str], tuple[str, ...]]:
    """Words before the first `--`, and after it: those are undeclared flags of the workload, and no targets."""
    at = words.index("--") if "--" in words else len(words)
    return words[:at], tuple(words[at + 1 :])


def _say(error: DeployError) -> int:
    from deployctl.report import faults

    print("\n".join(faults.lines(error)), file=sys.stderr)
    return error.exit_status


def _wrong_words(error: typer.TyperException, words: list[str]) -> int:
    """What the parser of the words refused, in our form; nothing was contacted."""
    from deployctl.errors import WordsError

    near = getattr(error, "possibilities", None)
    message = (error.message or error.format_message()).rstrip(".")
    if not message:  # there were no words: the help that was shown is the answer
        return WordsError.exit_status
    hint = f"did you mean '{near[0]}'?" if near else "see its --help"
    what, _, found = message.partition(". Did you mean ")
    if found:
        hint = f"did you mean {found.rstrip('?')}?"
    context = getattr(error, "ctx", None)
    return _say(WordsError(what[:1].lower() + what[1:], where=context.command_path if context else "deployctl", todo=hint))
