"""What `deployctl stop` and `deployctl start` do: one half of a workload's playbook. Imported when one is called, not before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from deployctl import inventory, playbooks
from deployctl import playbook as playbook_file
from deployctl.cli import run
from deployctl.cli.options import How
from deployctl.errors import WordsError, suggestion
from deployctl.inventory import TargetSpec
from deployctl.plan import BACK, START, STOP, Plan, back, bind
from deployctl.playbook import LoadedPlaybook
from deployctl.runner import open_session
from deployctl.transports.connect import Connections

HALVES = {"stop": STOP, "start": START}


def half(
    which: str, words: Sequence[str], named: str | None, extra: tuple[str, ...], environment: Mapping[str, str], cwd: Path, how: How
) -> int:
    """The exit status of the half on its targets, `TARGET` or `TARGET:WORKLOAD`. Raises DeployError before anything is changed."""
    hosts = inventory.load(inventory.find_hosts_file(environment, cwd))
    able = _able(HALVES[which][0], named, environment, cwd)
    bound = []
    for word in words:
        name, _, workload = word.partition(":")
        for target in hosts.select([name]):
            chosen = _of(workload or _only(target, able), able, which)
            bound.append(bind(chosen, target, {}, extra, keep=which == "start", only=HALVES[which]))
    return run.plans(bound, how)


def rollback(words: Sequence[str], to: str | None, named: str | None, environment: Mapping[str, str], cwd: Path, how: How) -> int:
    """The exit status of going back to an earlier run on each target. Raises DeployError before anything is changed."""
    hosts = inventory.load(inventory.find_hosts_file(environment, cwd))
    able = _able("launch", named, environment, cwd)
    bound: list[Plan] = []
    with Connections() as connections:
        for word in words:
            name, _, workload = word.partition(":")
            for target in hosts.select([name]):
                chosen = bind(_of(workload or _only(target, able), able, "start"), target, {}, only=BACK)
                with open_session(target, connections) as session:
                    found = session.ask("restore", to=to, workload=chosen.workload.as_data(), stage=False)
                bound.append(back(chosen, found))
    return run.plans(bound, how)


def _able(word: str, named: str | None, environment: Mapping[str, str], cwd: Path) -> list[LoadedPlaybook]:
    """The playbooks that have such a step; only the named one, if there is a name. Raises WordsError."""
    found = playbooks.find(playbooks.search_path(environment, cwd))
    if named is not None and named not in found:
        raise WordsError(f"'{named}' is no playbook", where="--playbook", todo=suggestion(named, found, "write it into ./playbooks"))
    able = []
    for path in [found[named]] if named else found.values():
        try:
            loaded = playbook_file.load(path)
        except WordsError:
            if named:
                raise
            continue  # calling that playbook tells its fault
        if any(step.word == word for step in loaded.model.steps):
            able.append(loaded)
    if not able:
        raise WordsError(f"no playbook has a '{word}' step", todo=f"write one, with '- {word}' among its steps")
    return able


def _only(target: TargetSpec, able: Sequence[LoadedPlaybook]) -> str:
    """The only workload that the playbooks, else the records of the target, name. Raises WordsError when it is not clear."""
    names = sorted({loaded.model.workload.name for loaded in able})
    if len(names) > 1:
        with Connections() as connections, open_session(target, connections) as session:
            known = [item["name"] for item in session.ask("status", workloads=[])["workloads"] if item["record"]]
        names = [name for name in names if name in known] or names
    if len(names) > 1:
        todo = f"name one: {', '.join(f'{target.name}:{name}' for name in names)}"
        raise WordsError(f"it is not clear which workload of '{target.name}' is meant", todo=todo)
    return names[0]


def _of(workload: str, able: Sequence[LoadedPlaybook], which: str) -> LoadedPlaybook:
    """The playbook of a workload; of several that say the same, the first. Raises WordsError."""
    found = [loaded for loaded in able if loaded.model.workload.name == workload]
    if not found:
        known = {loaded.model.workload.name for loaded in able}
        raise WordsError(f"no playbook names the workload '{workload}'", todo=suggestion(workload, known))
    halves = [[step.describe() for step in one.model.steps if step.word in HALVES[which]] for one in found]
    alike = all(said == halves[0] and one.model.workload == found[0].model.workload for said, one in zip(halves, found, strict=True))
    if not alike:
        names = ", ".join(one.name for one in found)
        raise WordsError(f"the playbooks {names} {which} '{workload}' in different ways", todo=f"name one: --playbook {found[0].name}")
    return found[0]
