"""The lab's one error: where and what, then what to do."""

from __future__ import annotations


class LabError(Exception):
    """Raised for everything that a person must put right; `str()` is the whole message."""

    def __init__(self, what: str, todo: str) -> None:
        super().__init__(f"{what}; do: {todo}")
