"""Where this target keeps its records, and who works with them."""

from __future__ import annotations

import grp
import os
import pwd
from typing import Any, Dict

from . import shared, state


def records(session: Any, request: Dict[str, Any]) -> Dict[str, Any]:
    """{"directory", "user", "shared", "group" (its group's name, of a shared one), "fault" (why nothing can be kept there, or null)}"""
    directory = state.directory(request.get("state"))
    together = shared.is_shared(directory)
    return {
        "directory": directory,
        "user": _named(pwd.getpwuid, os.geteuid()),
        "shared": together,
        "group": _named(grp.getgrgid, os.stat(directory).st_gid) if together else None,
        "fault": _fault(directory),
    }


def _fault(directory: str) -> Any:
    """Asked of the directory, or of the next one above that is there, since a run would make it."""
    there = directory
    while not os.path.lexists(there) and there != os.path.dirname(there):
        there = os.path.dirname(there)
    if not os.path.isdir(there):
        return "'%s' is no directory" % there
    if not os.access(there, os.W_OK | os.X_OK, effective_ids=True):
        return "'%s' may not be written by %s" % (there, _named(pwd.getpwuid, os.geteuid()))
    return None


def _named(look_up: Any, number: int) -> str:
    try:
        return str(look_up(number)[0])
    except KeyError:
        return str(number)
