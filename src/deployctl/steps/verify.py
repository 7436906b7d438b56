"""verify: looks at the staged files before anything is stopped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from deployctl.errors import RefusedError
from deployctl.steps.base import Opened, Record, Session, Setting, Step


@dataclass(frozen=True)
class Verified:
    """How many files were compiled, and by which interpreter."""

    files: int
    interpreter: str
    version: str


class Verify(Step):
    """Compiles every staged .py file in memory with the interpreter that the workload will use."""

    word: ClassVar[str] = "verify"
    phase: ClassVar[str] = "prepare"

    py_compile: bool = False

    @classmethod
    def expand(cls, value: object) -> object:
        """`verify: py_compile` turns that check on."""
        return {value: True} if isinstance(value, str) else {} if value is None else value

    def prepare(self, gathered: Any, session: Session, setting: Setting, opened: Opened, record: Record) -> Verified | None:
        """Raises RefusedError that names every file that does not compile, with its line."""
        if not self.py_compile:
            return None
        answer = session.ask("verify")
        if answer["faults"]:
            raise RefusedError(
                "; ".join(
                    f"{fault['path']}{_line(fault)}: {fault['what']}" for fault in answer["faults"]
                ),
                where="verify",
                todo=f"{answer['interpreter']} ({answer['version']}) cannot compile this; nothing was changed, mend it and run again",
            )
        record("verified", files=answer["files"], interpreter=answer["interpreter"], version=answer["version"], seconds=answer["seconds"])
        return Verified(answer["files"], answer["interpreter"], answer["version"])


def _line(fault: dict[str, Any]) -> str:
    return f":{fault['line']}" if fault["line"] else ""
