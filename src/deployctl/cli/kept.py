"""What releases and forget do. Imported when one is called, not before."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from deployctl import fleet, inventory
from deployctl.errors import DeployError, WordsError
from deployctl.report import faults
from deployctl.report import releases as report
from deployctl.runner import open_session, who
from deployctl.transports.connect import Connections


def releases(words: Sequence[str], as_json: bool) -> int:
    """Prints what each target keeps; the worst exit status. Raises WordsError."""
    hosts = inventory.load(inventory.find_hosts_file(os.environ, Path.cwd()))
    asked = [(target, word.partition(":")[2]) for word in words for target in hosts.select([word.partition(":")[0]])]
    statuses = []
    with Connections() as connections:
        for target, workload in asked:
            try:
                with open_session(target, connections) as session:
                    found = session.ask("releases", workload=workload or None)["releases"]
                shown = [json.dumps({"target": target.name, "releases": found})] if as_json else report.lines(target.name, found)
                print("\n".join(shown))
                statuses.append(0)
            except DeployError as error:
                print("\n".join(faults.lines(error)), file=sys.stderr)
                statuses.append(error.exit_status)
    return fleet.worst(statuses)


def forget(word: str) -> int:
    """Has one workload of one target forgotten. Raises DeployError."""
    name, _, workload = word.partition(":")
    if not workload:
        raise WordsError(f"'{word}' names no workload", where="forget", todo="write TARGET:WORKLOAD; `deployctl status` lists them")
    hosts = inventory.load(inventory.find_hosts_file(os.environ, Path.cwd()))
    chosen = hosts.select([name])
    if len(chosen) != 1:
        raise WordsError(f"'{name}' is a group", where="forget", todo="name one target")
    with Connections() as connections, open_session(chosen[0], connections) as session:
        gone = session.ask("forget", workload=workload, who=who())
    print("\n".join(report.forgotten(name, workload, gone)))
    return 0
