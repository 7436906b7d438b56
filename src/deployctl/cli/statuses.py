"""What `deployctl status` does. Imported when it is called, not before."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deployctl import inventory, playbooks
from deployctl import playbook as playbook_file
from deployctl.cli.each import each
from deployctl.errors import DeployError, RefusedError, suggestion
from deployctl.inventory import TargetSpec
from deployctl.report import states
from deployctl.runner import open_session
from deployctl.transports.connect import Connections


def show(words: Sequence[str], as_json: bool, environment: Mapping[str, str], cwd: Path) -> int:
    """Prints the state of each target; the worst exit status. Raises WordsError."""
    hosts = inventory.load(inventory.find_hosts_file(environment, cwd))
    asked = [(target, word.partition(":")[2]) for word in words for target in hosts.select([word.partition(":")[0]])]
    workloads = named(environment, cwd)
    with Connections() as connections:

        def ask(one: tuple[TargetSpec, str]) -> int:
            target, workload = one
            with open_session(target, connections) as session:
                answer = session.ask("status", workloads=workloads)
            answer = _only(answer, workload, target.name) if workload else answer
            print(json.dumps({"target": target.name, **answer}) if as_json else "\n".join(states.lines(target.name, answer)))
            return 0

        return each(asked, ask)


def named(environment: Mapping[str, str], cwd: Path) -> list[dict[str, Any]]:
    """The workloads that the playbooks name, one each; a playbook that cannot be read names none."""
    named: dict[str, dict[str, Any]] = {}
    for path in playbooks.find(playbooks.search_path(environment, cwd)).values():
        try:
            loaded = playbook_file.load(path)
        except DeployError:
            continue
        workload = loaded.model.workload
        named.setdefault(workload.name, {"name": workload.name, "match": loaded.match, "command": list(workload.command)})
    return list(named.values())


def _only(answer: dict[str, Any], workload: str, target: str) -> dict[str, Any]:
    kept = [item for item in answer["workloads"] if item["name"] == workload]
    if not kept:
        known = [item["name"] for item in answer["workloads"]]
        todo = suggestion(workload, known, "write a playbook that names it, or see `deployctl adopt`")
        raise RefusedError(f"'{workload}' is no workload that is known there", where=target, todo=todo)
    return {**answer, "workloads": kept}
