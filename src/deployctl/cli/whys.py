"""What `deployctl why` does. Imported when it is called, not before."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deployctl.cli import above
from deployctl.errors import DeployError, WordsError, suggestion
from deployctl.report import faults, remedies, whys
from deployctl.target import Session
from deployctl.transports.connect import Connections
from deployctl.transports.local import Local
from deployctl.values import signal_name

if TYPE_CHECKING:
    from deployctl.inventory import TargetSpec

HERE = "here"  # what this machine is called without a hosts file
WITHIN = 20.0  # seconds that the target may take to let the agent in, and the agent to answer


@dataclass(frozen=True)
class Asked:
    """The words of the command."""

    target: str | None
    pid: int | None
    match: str | None
    local: bool
    since: Path | None
    after: str | None


def show(asked: Asked, as_json: bool, verbose: bool, environment: Mapping[str, str], cwd: Path) -> int:
    """Prints the verdict; 0 when there is one, else the status of what kept it from being found. Raises WordsError."""
    target, workload = _target(asked, environment, cwd)
    request = _request(asked, workload)
    try:
        with Connections() as connections, above.above(target, connections) as host:
            answer = host.frozen(request)
            if answer is None:
                with _open(target, connections) as session:
                    if "pid" not in request and "match" not in request and "since" not in request:
                        request["workload"] = _workload(session, workload, environment, cwd)
                    answer = session.ask("why", within=WITHIN, **request)
                answer = host.add(answer)
    except DeployError as error:
        print("\n".join(faults.lines(error)), file=sys.stderr)
        return error.exit_status
    answer = {"target": target.name if target else HERE, **answer}
    answer["commands"] = remedies.commands(answer, target.ct if target else None)
    print(json.dumps(answer, separators=(",", ":")) if as_json else "\n".join(whys.lines(answer, verbose)))
    return 0


def _open(target: TargetSpec | None, connections: Connections) -> Session:
    if target is None:
        return Session(HERE, Local(HERE), patience=WITHIN)
    return Session(target.name, connections.transport(target), target.python, target.state, patience=WITHIN)


def _target(asked: Asked, environment: Mapping[str, str], cwd: Path) -> tuple[TargetSpec | None, str]:
    """The target, None for this machine; and the workload's name, or an empty text. Raises WordsError."""
    named = [word for word in (asked.pid, asked.match) if word is not None]
    if len(named) > 1:
        raise WordsError("--pid and --match name a process each", where="deployctl why", todo="give one of them")
    if asked.local:
        if asked.target is not None:
            raise WordsError(
                f"--local is this machine, and '{asked.target}' is another target", where="deployctl why", todo="give one of them"
            )
        if not named and asked.since is None:
            raise WordsError("it is not clear which process is meant", where="deployctl why", todo="give --pid N or --match TEXT")
        return None, ""
    if asked.target is None:
        raise WordsError("there is no target", where="deployctl why", todo="name one, or give --local for this machine")
    name, _, workload = asked.target.partition(":")
    if workload and (named or asked.since is not None):
        raise WordsError(f"'{workload}' is a workload, and another process is named", where="deployctl why", todo="give one of them")
    from deployctl import inventory  # with pydantic, which takes time that --local need not spend

    targets = inventory.load(inventory.find_hosts_file(environment, cwd)).select([name])
    if len(targets) > 1:
        raise WordsError(f"'{name}' is a group", where="deployctl why", todo="name one of its targets")
    return targets[0], workload


def _request(asked: Asked, workload: str) -> dict[str, Any]:
    request: dict[str, Any] = {}
    if asked.pid is not None:
        request["pid"] = asked.pid
    if asked.match is not None:
        request["match"] = asked.match
    if asked.since is not None:
        request["since"] = _earlier(asked.since)
        if asked.pid not in (None, request["since"]["pid"]):
            what = f"'{asked.since}' is about pid {request['since']['pid']}, not {asked.pid}"
            raise WordsError(what, where="--since", todo="give the answer that was about that process")
    if asked.after is not None:
        request["after"] = [signal_name(word.strip()) for word in asked.after.split(",") if word.strip()]
    return request


def _earlier(path: Path) -> dict[str, Any]:
    """The look of an earlier answer. Raises WordsError."""
    try:
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        answer = json.loads(lines[-1]) if lines else None
    except OSError as error:
        raise WordsError(f"cannot read '{path}': {error.strerror}", where="--since", todo="name a file with an answer of --json") from error
    except ValueError as error:
        raise WordsError(f"'{path}' is no JSON", where="--since", todo="name a file with an answer of --json") from error
    look = answer.get("look") if isinstance(answer, dict) else None
    if not isinstance(look, dict) or "samples" not in look:
        raise WordsError(f"'{path}' holds no look at a process", where="--since", todo="name a file with an answer of `why --json`")
    return look


def _workload(session: Session, name: str, environment: Mapping[str, str], cwd: Path) -> dict[str, Any]:
    """The workload that is meant: the named one, else the only one that the target or, if it knows none, the playbooks know."""
    from deployctl.cli import statuses

    target = session.name
    named = {item["name"]: item for item in statuses.named(environment, cwd)}
    known = {item["name"]: item for item in session.ask("status", within=WITHIN, workloads=list(named.values()))["workloads"]}
    recorded = [word for word, item in known.items() if item["record"]]
    running = [word for word, item in known.items() if item["process"] or item["fault"]]
    names = [name] if name else recorded or running or list(known)
    if len(names) != 1:
        what = "it is not clear which workload is meant" if names else "no workload is known there"
        todo = f"name one: {', '.join(f'{target}:{word}' for word in names)}" if names else "give --pid N or --match TEXT"
        raise WordsError(what, where=target, todo=todo)
    if names[0] not in known:
        todo = suggestion(name, known, "give --pid N or --match TEXT")
        raise WordsError(f"'{name}' is no workload that is known there", where=target, todo=todo)
    return named.get(names[0], {"name": names[0]})
