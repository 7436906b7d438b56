"""check: proves that the launched program works: alive for a while, and a line in its log."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator

from deployctl.errors import WordsError
from deployctl.fields import Duration, carried
from deployctl.steps.base import Operations, Setting, Step


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise WordsError(f"'{text}' is no regular expression: {error}", todo="see the syntax of Python's re; quote it in YAML") from error
    return text


class Check(Step):
    """Waits until the new process was alive for `alive` and a line that matches `log` was written since its launch."""

    word: ClassVar[str] = "check"
    phase: ClassVar[str] = "cutover"
    needs: ClassVar[str] = "launch"

    alive: Duration = 5.0
    log: Annotated[str, AfterValidator(carried(_pattern))] | None = None
    within: Duration = 60.0

    def compile(self, setting: Setting, piece: Any) -> Operations:
        """The check; there is nothing to undo."""
        return Operations(do=({"op": "check", "alive": self.alive, "log": self.log, "within": max(self.within, self.alive)},))
