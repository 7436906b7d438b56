"""The environment of a launched program: a clean, declared one, whoever started deployctl from where."""

from __future__ import annotations

import os
import pwd
from typing import Dict, Mapping, NamedTuple, Optional

from .faults import Refused

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


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


def clean(user: User, added: Mapping[str, str]) -> Dict[str, str]:
    """PATH, HOME, USER, LOGNAME, SHELL, LANG, PYTHONUNBUFFERED, and what the playbook adds."""
    return {
        "PATH": PATH,
        "HOME": user.home,
        "USER": user.name,
        "LOGNAME": user.name,
        "SHELL": user.shell,
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        **added,
    }
