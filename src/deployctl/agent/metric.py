"""A number out of a log, against bounds that are numbers, or parts of what it was before the stop."""

from __future__ import annotations

import math
import re
from typing import Any, Dict, Iterable, List, Optional

from . import logs
from .condition import Condition

LOOKED_AT = 1 << 20  # bytes of the old log in which the value before is looked for
Operation = Dict[str, Any]


def number_in(pattern: "re.Pattern[str]", line: str) -> Optional[float]:
    """The number that the pattern's group finds in the line; None when there is none. `1,024.5` and `1_024.5` are numbers."""
    found = pattern.search(line)
    if found is None or found.group(1) is None:
        return None
    try:
        return float(found.group(1).replace(",", "").replace("_", ""))
    except ValueError:
        return None


def value(numbers: List[float]) -> Optional[float]:
    """The median of the numbers; one that is no number ("nan") makes it none, so that it meets no bound."""
    if not numbers or any(map(math.isnan, numbers)):
        return None
    ordered = sorted(numbers)
    middle = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return middle[0] if middle[0] == middle[1] else sum(middle) / 2  # the mean of two equal infinities would be none


def note_before(spec: Dict[str, Any]) -> None:
    """Writes into each check of a job what its metric was in the log of the process that runs before the stop (`before`, or null)."""
    for operation in spec["do"]:
        if operation["op"] == "check" and operation.get("metric"):
            operation["metric"]["before"] = _before(spec, operation["metric"])


def _before(spec: Dict[str, Any], wanted: Operation) -> Optional[float]:
    if spec["before"] is None:
        return None
    record, capture = spec["record"], spec["capture"]
    if record is not None and (record["pid"], record["started"]) == (spec["before"]["pid"], spec["before"]["started"]):
        path, offset = record["log"], record["log_offset"]
    elif capture is not None and (capture["stdout"] or capture["stderr"]):
        path, offset = capture["stdout"] or capture["stderr"], 0
    else:
        return None
    pattern = re.compile(wanted["log"])
    found = [number_in(pattern, line) for line in logs.last_lines(path, offset, LOOKED_AT)]
    return value([number for number in found if number is not None][-wanted["over"] :])


class Metric(Condition):
    """The condition: the median of the last `over` numbers of this launch's log lies within the bounds.

    operation: name, log (regular expression with one group), over, at_least and at_most ({"value", "of_before"} or null), before.
    A bound that is a part of a value before which nobody knows is not applied.
    """

    def __init__(self, operation: Operation) -> None:
        super().__init__(str(operation["name"]), "")
        self.operation = operation
        self.now: Optional[float] = None
        self._pattern = re.compile(operation["log"])
        self._numbers: List[float] = []

    def feed(self, lines: Iterable[str]) -> None:
        """Takes the numbers of new lines."""
        new = (number_in(self._pattern, line) for line in lines)
        self._numbers = (self._numbers + [number for number in new if number is not None])[-self.operation["over"] :]

    def look(self, left: float) -> None:
        """Compares what there is now."""
        self.now = value(self._numbers) if len(self._numbers) >= self.operation["over"] else None
        self.met = self.now is not None and not self._missed(self.now)
        self.seen = self._say()

    def _bound(self, which: str) -> Optional[float]:
        bound, before = self.operation[which], self.operation.get("before")
        if bound is None or (bound["of_before"] and before is None):
            return None
        return float(bound["value"] * (before if bound["of_before"] else 1.0))

    def _missed(self, now: float) -> str:
        low, high = self._bound("at_least"), self._bound("at_most")
        if low is not None and not now >= low:
            return "at_least"
        return "at_most" if high is not None and not now <= high else ""

    def _say(self) -> str:
        """What stands against it, or what it is."""
        if self.now is None:
            count = "%d of %d numbers" % (len(self._numbers), self.operation["over"])
            return "%s: the log has %s of '%s'" % (self.name, count, self.operation["log"])
        missed = self._missed(self.now)
        if not missed:
            return "%s is %.6g" % (self.name, self.now)
        wanted, bound = self.operation[missed], self._bound(missed) or 0.0
        part = " (%g %% of %.6g before)" % (wanted["value"] * 100, self.operation["before"]) if wanted["of_before"] else ""
        return "%s is %.6g, not %s %.6g%s" % (self.name, self.now, missed.replace("_", " "), bound, part)

    def as_dict(self) -> Dict[str, Any]:
        """{"name", "before", "after"}: either may be null."""
        self.look(0.0)
        return {"name": self.name, "before": self.operation.get("before"), "after": self.now}
