"""The ways in which an operation says no. The session turns them into an answer, the job into an event."""

from __future__ import annotations

import os
import traceback
from typing import Any, Dict


class Fault(Exception):
    """An operation said no: `what` happened, `where` in the target, what to do (`todo`), and `facts` as JSON values.

    kind is one of "refused" (nothing was changed), "busy", "wrong" (a request of ours that makes no sense), "failed".
    status is the exit status that the run would end with (docs/architecture.md section 6).
    """

    kind = "failed"
    status = 1

    def __init__(self, what: str, where: str = "", todo: str = "", **facts: Any) -> None:
        super().__init__(what)
        self.what, self.where, self.todo, self.facts = what, where, todo, facts

    def as_dict(self) -> Dict[str, Any]:
        """The fault as JSON values: kind, status, what, where, todo, and the facts."""
        return {"kind": self.kind, "status": self.status, "what": self.what, "where": self.where, "todo": self.todo, **self.facts}


class Refused(Fault):
    """A condition is not met; nothing was changed."""

    kind = "refused"


class Wrong(Fault):
    """A request of ours that makes no sense."""

    kind = "wrong"


class Busy(Fault):
    """Another run holds the lock."""

    kind = "busy"
    status = 6


class NotStopped(Fault):
    """The ladder ended and something of the workload still runs."""

    status = 4


class Cancelled(Fault):
    """A person took the run back by `deployctl cancel`."""


def bug(error: Exception, todo: str = "") -> Fault:
    """An exception that no operation meant, as a fault that names its place in the agent."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = "agent/%s:%d" % (os.path.basename(last.filename), last.lineno or 0)
    return Fault("%s: %s" % (type(error).__name__, error), where=where, todo=todo)
