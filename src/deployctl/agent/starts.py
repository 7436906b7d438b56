"""What the start of a program needs, resolved: the one that the playbook asks for, or the one that ran before."""

from __future__ import annotations

import grp
import os
from typing import Any, Dict, List, Mapping, NamedTuple, Optional

from . import environment, program
from .faults import Fault, Refused


class Start(NamedTuple):
    """Everything that the start of a program needs, resolved.

    user: None is who the agent is; groups: None is those of the user; limits: {RLIMIT_NAME: [soft, hard], -1 for none}; asked: a limit,
    nice or weight that cannot be set is a fault, since a person has asked for it.
    """

    file: str
    argv: List[str]
    environment: Dict[str, str]
    directory: str
    log: str
    user: Optional[environment.User]
    groups: Optional[List[int]]
    umask: int
    nice: Optional[int]
    limits: Dict[str, List[int]]
    oom_score_adj: Optional[int]
    asked: bool


def new(workload: Mapping[str, Any], capture: Optional[Mapping[str, Any]]) -> Start:
    """The start that the playbook asks for. Raises Refused, or Fault for a directory that is not there."""
    user = environment.user_of(workload["user"])
    surroundings = environment.of(workload, capture)
    directory = workload["directory"]
    if not os.path.isdir(directory):
        raise Fault("there is no such directory", where=directory, todo="correct `directory`, or push something there")
    found = program.find(workload["command"], surroundings, directory)
    groups = groups_of(workload)
    return Start(
        found.path, workload["command"], surroundings, directory, os.path.join(directory, workload["log"]),
        user if user.uid != os.geteuid() or groups is not None else None, groups,
        workload.get("umask", 0o022), workload.get("nice"), workload.get("limits", {}), workload.get("oom_score_adj"), asked=True,
    )  # fmt: skip


def groups_of(workload: Mapping[str, Any]) -> Optional[List[int]]:
    """The groups that the playbook names; None where it names none. Raises Refused."""
    names = workload.get("groups")
    return None if names is None else [_group(name) for name in names]


def _group(name: str) -> int:
    try:
        return int(name) if name.isdigit() else grp.getgrnam(name).gr_gid
    except KeyError as error:
        raise Refused("there is no group '%s'" % name, where="workload: groups", todo="correct `groups`, or make it there") from error


def as_before(workload: Mapping[str, Any], was: Mapping[str, Any]) -> Start:
    """The start that brings back what ran before: argv, environment, directory, user, limits as read before the first signal.

    Ignored signals and a blocked mask are not brought back: they are the fault that the start of old brought in.
    """
    surroundings = environment.without_session(was["environment"])
    found = program.running(was["argv"], was["environment"], was["directory"], was["exe"])
    log = was.get("stdout") or os.path.join(workload["directory"], workload["log"] or os.devnull)
    user = environment.User("", was["uid"], was["gid"], "", "") if was["uid"] != os.geteuid() else None
    return Start(
        found.path, was["argv"], surroundings, was["directory"], log, user, was["groups"], was["umask"],
        was["nice"], was["limits"], was["oom_score_adj"], asked=False,
    )  # fmt: skip


def inheriting(workload: Mapping[str, Any], was: Mapping[str, Any], operation: Mapping[str, Any]) -> Start:
    """What ran before as it ran, but with the operation's argv and log, its `environment` added and the names in `without` left out."""
    start = as_before(workload, was)
    kept = {name: text for name, text in start.environment.items() if name not in operation["without"]}
    return start._replace(
        argv=operation["argv"], environment={**kept, **operation["environment"]}, log=os.path.join(start.directory, operation["log"])
    )
