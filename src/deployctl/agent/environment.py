"""The environment of a launched program: a clean one or that of the process that ran, and what the playbook adds; nothing of ours."""

from __future__ import annotations

import os
import pwd
import re
from typing import Any, Dict, List, Mapping, NamedTuple, Optional

from . import procfs
from .faults import Refused

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SESSION_BOUND = ("SSH_", "TMUX", "STY", "INVOCATION_ID", "JOURNAL_STREAM", "NOTIFY_SOCKET", "DEPLOYCTL_")  # names of a session that is gone
SHELL_S = ("_", "PWD", "OLDPWD", "SHLVL")  # names that a shell sets for itself
TELLING = ("LD_LIBRARY_PATH", "CUDA_", "HF_", "PYTHON", "NCCL_", "TORCH_", "OMP_")  # how the names begin whose loss changes a program
_ENTRY = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)")
Surroundings = Dict[str, str]


class User(NamedTuple):
    """A user of the target."""

    name: str
    uid: int
    gid: int
    home: str
    shell: str


def user_of(name: Optional[str]) -> User:
    """The named user, else the one that the agent runs as. Raises Refused when the target does not know it."""
    if name is None:
        uid = os.geteuid()
        try:
            entry = pwd.getpwuid(uid)
        except KeyError:
            return User(str(uid), uid, os.getegid(), "/", "/bin/sh")
    else:
        try:
            entry = pwd.getpwnam(name)
        except KeyError as error:
            raise Refused("there is no user '%s'" % name, where="workload: user", todo="correct `user`, or make it there") from error
    return User(entry.pw_name, entry.pw_uid, entry.pw_gid, entry.pw_dir, entry.pw_shell or "/bin/sh")


def uid_of(name: str) -> Optional[int]:
    """The id of a user, by name or number; None for a name that the target does not know."""
    if name.isdigit():
        return int(name)
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return None


def of(workload: Mapping[str, Any], capture: Optional[Mapping[str, Any]]) -> Surroundings:
    """The environment that the playbook asks for: the base, what its launcher needs (`implied`), `env_file`, `environment`, later ones win.

    capture: the process that runs or ran, for the base `inherit`. Raises Refused.
    """
    user = user_of(workload["user"])
    if workload.get("environment_base") == "inherit":
        base = inherited(capture)
        base.update(_self(user) if workload["user"] is not None else {})
    else:
        base = clean(user, {})
    path = workload.get("env_file")
    added = from_file(os.path.join(workload["directory"], path)) if path else {}
    return {**base, **workload.get("implied", {}), **added, **workload["environment"]}


def clean(user: User, added: Mapping[str, str]) -> Surroundings:
    """PATH, HOME, USER, LOGNAME, SHELL, LANG, PYTHONUNBUFFERED, and what the playbook adds."""
    return {"PATH": PATH, **_self(user), "LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1", **added}


def _self(user: User) -> Surroundings:
    return {"HOME": user.home, "USER": user.name, "LOGNAME": user.name, "SHELL": user.shell}


def inherited(capture: Optional[Mapping[str, Any]]) -> Surroundings:
    """The environment of the process that runs, without the names of a session that is gone. Raises Refused without a process."""
    if capture is None:
        raise Refused(
            "nothing runs whose environment could be inherited", where="workload: environment_base",
            todo="start it by hand, or once with `environment_base: clean`",
        )  # fmt: skip
    if "LOCAL_RANK" in capture["environment"]:
        raise Refused(
            "process %d is a rank: what it has in its environment was set by its launcher" % capture["pid"],
            where="workload: environment_base", todo="let its launcher be what `match` finds",
        )  # fmt: skip
    return {name: text for name, text in without_session(capture["environment"]).items() if name not in SHELL_S}


def without_session(surroundings: Mapping[str, str]) -> Surroundings:
    """Without the names that belong to a login session, a unit or a run that is gone."""
    return {name: text for name, text in surroundings.items() if not name.startswith(SESSION_BOUND)}


def from_file(path: str) -> Surroundings:
    """The variables of a file: `NAME=value` a line, `#` comments, `export` allowed, one pair of quotes around a value taken off.

    Nothing is expanded. Raises Refused, with the line and without its value.
    """
    try:
        lines = procfs.text(procfs.read(path)).splitlines()
    except OSError as error:
        todo = "put the file there; it is read in the target"
        raise Refused("env_file cannot be read: %s" % error.strerror, where=path, todo=todo) from error
    found: Surroundings = {}
    for number, line in enumerate(map(str.strip, lines), 1):
        if not line or line.startswith("#"):
            continue
        entry = _ENTRY.fullmatch(line)
        if entry is None or "\0" in line:
            raise Refused("this is no `NAME=value`", where="%s:%d" % (path, number), todo="correct the line; nothing is expanded there")
        text = entry.group(2).strip()
        quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
        found[entry.group(1)] = text[1:-1] if quoted else text
    return found


def compared(old: Optional[Mapping[str, str]], new: Mapping[str, str]) -> Dict[str, List[str]]:
    """{"lost", "changed"}: names that tell a program where its libraries, data and devices are. Values stand nowhere."""
    telling = {name: text for name, text in (old or {}).items() if name.startswith(TELLING)}
    lost = sorted(name for name in telling if name not in new)
    return {"lost": lost, "changed": sorted(name for name in telling if name in new and new[name] != telling[name])}
