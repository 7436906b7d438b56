"""What attach, history, cancel and resume do. Imported when one is called, not before."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deployctl import inventory, journal
from deployctl.errors import RefusedError, WordsError
from deployctl.events import Event, Sink
from deployctl.report import histories
from deployctl.report.screen import Screen, as_json
from deployctl.runner import open_session, tell, who
from deployctl.target import Session
from deployctl.transports.connect import Connections


def attach(run: str | None, on: str | None, new: bool, json_lines: bool) -> int:
    """Shows the events of a run until its end; its exit status.

    4 or 5 for a run whose job died before it, 130 for one that died in prepare.
    """
    kept = journal.Journal()
    with _reached(run, on) as (session, target):
        chosen = run or _newest(session, target)
        seen = {json.dumps(event, sort_keys=True) for event in kept.read(chosen)}
        show = as_json if json_lines else Screen()
        status, answer = tell(session.follow("attach", run=chosen), _unless(seen, kept, show, new), to_the_end=True)
    if answer["status"] is not None:
        return status
    print("\n".join(histories.unfinished(target, chosen, answer)), file=sys.stderr)
    if not answer["unfinished"]:
        return 130  # it ended in prepare
    return 4 if answer["running"] else 5


def history(on: str, json_lines: bool) -> int:
    """Lists the runs of a target."""
    with _reached(None, on) as (session, target):
        runs = session.ask("history")["runs"]
    print("\n".join(json.dumps(run) for run in runs) if json_lines else "\n".join(histories.lines(target, runs)))
    return 0


def cancel(run: str | None, on: str | None) -> int:
    """Asks the job of a run to take it back, and follows it to its end."""
    with _reached(run, on) as (session, target):
        chosen = run or _newest(session, target)
        session.ask("cancel", run=chosen, who=who())
        print(f"{target}: run {chosen} hears of it now", flush=True)
        kept = journal.Journal()
        seen = {json.dumps(event, sort_keys=True) for event in kept.read(chosen)}
        status, answer = tell(session.follow("attach", run=chosen), _unless(seen, kept, Screen(), new=False), to_the_end=True)
        del answer
        return 0 if status == 1 else status


def resume(run: str | None, on: str | None, json_lines: bool) -> int:
    """Leads a run whose job was killed to its end; its exit status."""
    kept = journal.Journal()
    with _reached(run, on) as (session, target):
        chosen = run or _newest(session, target)
        show = as_json if json_lines else Screen()
        return tell(session.follow("resume", run=chosen, who=who()), _unless(set(), kept, show, new=False))[0]


def _unless(seen: set[str], kept: journal.Journal, show: Sink, new: bool) -> Sink:
    """Shows each event, or only new ones; the journal gets what it has not."""

    def emit(event: Event) -> None:
        known = json.dumps(event, sort_keys=True) in seen
        if not known:
            kept.append(event)
        if not (known and new):
            show(event)

    return emit


@contextmanager
def _reached(run: str | None, on: str | None) -> Iterator[tuple[Session, str]]:
    """The session with the target where the run is. Raises DeployError."""
    hosts = inventory.load(inventory.find_hosts_file(os.environ, Path.cwd()))
    chosen = hosts.select([on or _target_of(run)])
    if len(chosen) != 1:
        raise WordsError(f"'{on}' is a group", where="--on", todo="name one target")
    with Connections() as connections, open_session(chosen[0], connections) as session:
        yield session, chosen[0].name


def _target_of(run: str | None) -> str:
    """The target of a run, or of the newest one, as the journal of this machine has it. Raises WordsError."""
    kept = journal.Journal()
    chosen = run or kept.newest()
    events = kept.read(chosen) if chosen else []
    if not events:
        what = f"this machine has no run '{run}' in its journal" if run else "this machine's journal has no run"
        raise WordsError(what, todo="name the target: --on TARGET")
    return str(events[0]["target"])


def _newest(session: Session, target: str) -> str:
    """The run of the target that is under way, else its newest one. Raises RefusedError."""
    runs: list[dict[str, Any]] = session.ask("history")["runs"]
    if not runs:
        raise RefusedError("no run is known there", where=target)
    return str(next((run for run in reversed(runs) if not run["end"]), runs[-1])["run"])
