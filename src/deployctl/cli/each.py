"""Several targets, one after the other, where one that cannot be asked keeps the others from nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TypeVar

from deployctl import fleet
from deployctl.errors import DeployError
from deployctl.report import faults

T = TypeVar("T")


def each(items: Iterable[T], ask: Callable[[T], int]) -> int:
    """Asks each; an error is printed, and is the status of that one. The worst status."""
    statuses = []
    for item in items:
        try:
            statuses.append(ask(item))
        except DeployError as error:
            print("\n".join(faults.lines(error)), file=sys.stderr)
            statuses.append(error.exit_status)
    return fleet.worst(statuses)
