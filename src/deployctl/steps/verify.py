"""verify: looks at the staged files before anything is stopped."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from deployctl.errors import RefusedError, WordsError
from deployctl.fields import Duration, Filled, Text, carried
from deployctl.steps.base import Opened, Record, Session, Setting, Step

LONGEST = 600.0  # seconds: the agent answers nothing else meanwhile


@dataclass(frozen=True)
class Verified:
    """How many files were compiled, and by which interpreter."""

    files: int
    interpreter: str
    version: str


def _version(text: str) -> str:
    if not re.fullmatch(r"3(\.\d+){1,2}", text):
        raise WordsError(f"'{text}' is no version of Python 3", todo="write for example \"3.11\"")
    return text


def _module(text: str) -> str:
    if not all(part.isidentifier() for part in text.split(".")):
        raise WordsError(f"'{text}' is no name of a module", todo="write it as in an import statement, for example 'train.model'")
    return text


def _bounded(seconds: float) -> float:
    if not 0 < seconds <= LONGEST:
        raise WordsError("it must be more than nothing and at most 10m", todo="write for example 60s")
    return seconds


class Verify(Step):
    """Compiles every staged .py file in memory with the interpreter that the workload will use; imports modules and runs a command in
    the tree as it will be.
    """

    word: ClassVar[str] = "verify"
    phase: ClassVar[str] = "prepare"

    py_compile: bool = False
    imports: list[Annotated[Text, AfterValidator(carried(_module))]] = Field(default_factory=list, alias="import")
    command: Annotated[list[Text], Field(min_length=1)] | None = None
    within: Annotated[Duration, AfterValidator(carried(_bounded))] = 60.0
    python: Annotated[Filled, AfterValidator(carried(_version))] | None = None

    @classmethod
    def expand(cls, value: object) -> object:
        """`verify: py_compile` turns that check on."""
        return {value: True} if isinstance(value, str) else {} if value is None else value

    def prepare(self, gathered: Any, session: Session, setting: Setting, opened: Opened, record: Record) -> Verified | None:
        """Raises RefusedError that names every fault, with file, line and the line's text."""
        if not (self.py_compile or self.imports or self.command or self.python):
            return None
        answer = session.ask("verify", compile=self.py_compile, imports=self.imports, command=self.command, time=self.within)
        interpreter, version = answer["interpreter"], answer["version"]
        if self.python and version.split(".")[: self.python.count(".") + 1] != self.python.split("."):
            what = f"{interpreter} is Python {version}, the playbook expects {self.python}"
            raise RefusedError(what, where="verify: python", todo="correct `python`, or the interpreter in `command`")
        if answer["faults"]:
            does = "compile" if self.py_compile else "run"
            todo = f"{interpreter} ({version}) cannot {does} this; nothing was changed, mend it and run again"
            raise RefusedError("; ".join(map(_sentence, answer["faults"])), where="verify", todo=todo)
        record(
            "verified", files=answer["files"], interpreter=interpreter, version=version, seconds=answer["seconds"],
            warnings=answer["warnings"], imported=self.imports, command=self.command,
        )  # fmt: skip
        return Verified(answer["files"], interpreter, version)


def _sentence(fault: dict[str, Any]) -> str:
    line = f":{fault['line']}" if fault["line"] else ""
    text = (fault.get("text") or "").strip()
    return f"{fault['path']}{line}: {fault['what']}{f' in `{text}`' if text else ''}"
