"""What releases and forget do. Imported when one is called, not before."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from deployctl import inventory
from deployctl.cli.each import each
from deployctl.errors import WordsError
from deployctl.inventory import TargetSpec
from deployctl.report import releases as report
from deployctl.runner import open_session, who
from deployctl.transports.connect import Connections


def releases(words: Sequence[str], as_json: bool) -> int:
    """Prints what each target keeps; the worst exit status. Raises WordsError."""
    hosts = inventory.load(inventory.find_hosts_file(os.environ, Path.cwd()))
    asked = [(target, word.partition(":")[2]) for word in words for target in hosts.select([word.partition(":")[0]])]
    with Connections() as connections:

        def ask(one: tuple[TargetSpec, str]) -> int:
            target, workload = one
            with open_session(target, connections) as session:
                found = session.ask("releases", workload=workload or None)["releases"]
            print(json.dumps({"target": target.name, "releases": found}) if as_json else "\n".join(report.lines(target.name, found)))
            return 0

        return each(asked, ask)


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
