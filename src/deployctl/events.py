"""The event: one thing that happened, as data with its time. The same on the screen, in the journal and in the record.

docs/architecture.md section 6 lists the words and their fields.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import Any

VERSION = 1
Event = dict[str, Any]
Sink = Callable[[Event], None]


def new_run() -> str:
    """A run's id: the UTC second it began in, and four random letters: '20261129-180102-k3f9'."""
    letters = "".join(secrets.choice("abcdefghijkmnpqrstuvwxyz23456789") for _ in range(4))
    return time.strftime("%Y%m%d-%H%M%S-", time.gmtime()) + letters


def event(run: str, target: str, phase: str, what: str, **fields: Any) -> Event:
    """An event of now; `fields` must be JSON values."""
    return {"v": VERSION, "t": round(time.time(), 3), "run": run, "target": target, "phase": phase, "what": what, **fields}
