"""restore: the files of an earlier run, from what the target keeps; the step of `deployctl rollback`, and of no playbook."""

from __future__ import annotations

from typing import Any, ClassVar

from deployctl.errors import RefusedError
from deployctl.steps.base import Opened, Operations, Record, Session, Setting, Step


class Restore(Step):
    """Stages what was live after the run `to`; None: before the first launch. `undone` are the runs that this takes back."""

    word: ClassVar[str] = "restore"
    phase: ClassVar[str] = "prepare"

    to: str | None = None
    undone: tuple[str, ...] = ()

    def preview(self, gathered: Any, session: Session, setting: Setting, opened: Opened) -> dict[str, Any]:
        """Which files would be replaced and which would go."""
        found = self._ask(session, setting, stage=False)
        return {"changed": _paths(found, "paths"), "gone": _paths(found, "remove")}

    def prepare(self, gathered: Any, session: Session, setting: Setting, opened: Opened, record: Record) -> list[dict[str, Any]]:
        """The sets that are to go live. Raises RefusedError when another run came in between."""
        found = self._ask(session, setting, stage=True)
        record("restoring", to=found["to"], undone=found["undone"], changed=_paths(found, "paths"), gone=_paths(found, "remove"))
        return list(found["sets"])

    def compile(self, setting: Setting, piece: list[dict[str, Any]]) -> Operations:
        """Going live, and back."""
        if not piece:
            return Operations()
        return Operations(do=({"op": "golive", "sets": piece},), undo=({"op": "goback", "sets": piece},))

    def _ask(self, session: Session, setting: Setting, stage: bool) -> dict[str, Any]:
        found = session.ask("restore", to=self.to, stage=stage, workload=setting.workload.as_data())
        if (found["to"], tuple(found["undone"])) != (self.to, self.undone):
            raise RefusedError("another run came in between", where="rollback", todo="look at `deployctl history`, then run again")
        return found


def _paths(found: dict[str, Any], key: str) -> list[str]:
    return [f"{files['root']}/{path}" for files in found["sets"] for path in files[key]]
