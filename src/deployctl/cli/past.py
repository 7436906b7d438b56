"""What attach, history, cancel and resume do. Imported when one is called, not before."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deployctl import inventory, journal
from deployctl.errors import Interrupted, RefusedError, WordsError
from deployctl.events import Event, Sink
from deployctl.report import histories
from deployctl.report.screen import Screen, as_json
from deployctl.runner import died, interrupted, open_session, tell, who
from deployctl.target import Session
from deployctl.transports.connect import Connections


def attach(run: str | None, on: str | None, new: bool, json_lines: bool) -> int:
    """Shows the events of a run until its end; its exit status. Raises DeployError: for a run that has no end, and is not at work, too."""
    kept = journal.Journal()
    with _reached(run, on) as (session, target):
        chosen = run or _newest(session, target)
        show = as_json if json_lines else Screen()
        return _followed(session, "attach", chosen, _unless(kept.read(chosen), kept, show, new))


def history(on: str, json_lines: bool) -> int:
    """Lists the runs of a target."""
    with _reached(None, on) as (session, target):
        runs = session.ask("history")["runs"]
    print("\n".join(json.dumps(run) for run in runs) if json_lines else "\n".join(histories.lines(target, runs)))
    return 0


def cancel(run: str | None, on: str | None) -> int:
    """Asks the job of a run to take it back, and follows it to its end: 0 when what was before is there again. Raises DeployError."""
    kept = journal.Journal()
    with _reached(run, on) as (session, target):
        chosen = run or _newest(session, target)
        session.ask("cancel", run=chosen, who=who())
        print(f"{target}: run {chosen} hears of it now", flush=True)
        status = _followed(session, "attach", chosen, _unless(kept.read(chosen), kept, Screen(), new=False))
    if status == 0:
        todo = "`deployctl rollback` goes back to what was before"
        raise RefusedError("it came too late: the run was at its end", where=target, todo=todo)
    return 0 if status == 1 else status


def resume(run: str | None, on: str | None, json_lines: bool) -> int:
    """Leads a run whose job was killed to its end; its exit status. Raises DeployError."""
    kept = journal.Journal()
    with _reached(run, on) as (session, target):
        chosen = run or _newest(session, target)
        show = as_json if json_lines else Screen()
        return _followed(session, "resume", chosen, _unless([], kept, show, new=False), who=who())


def _followed(session: Session, op: str, run: str, emit: Sink, **fields: Any) -> int:
    """The exit status of a run that is followed to its end. Raises DeployError for one that comes to none, or is left by a person."""
    doing = ""

    def told(event: Event) -> None:
        nonlocal doing
        doing = event["op"] if event["what"] == "op" else doing
        emit(event)

    try:
        status, answer = tell(session.follow(op, run=run, **fields), told, to_the_end=True)
    except Interrupted as error:
        raise interrupted(session.name, run, doing) from error
    if answer["status"] is None:
        raise died(session.name, run, answer)
    return status


def _unless(seen: list[Event], kept: journal.Journal, show: Sink, new: bool) -> Sink:
    """Shows each event, or only new ones; the journal gets what it has not."""
    known = {json.dumps(event, sort_keys=True) for event in seen}

    def emit(event: Event) -> None:
        if json.dumps(event, sort_keys=True) not in known:
            kept.append(event)
        elif new:
            return
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
    """The run of the target that is under way, else the newest that has no end and needs one, else its newest. Raises RefusedError."""
    runs: list[dict[str, Any]] = session.ask("history")["runs"]
    if not runs:
        raise RefusedError("no run is known there", where=target)
    at_work = [run for run in runs if run["alive"]]
    killed = [run for run in runs if not run["end"] and run["op"] != "prepare"]
    return str((at_work or killed or runs)[-1]["run"])
