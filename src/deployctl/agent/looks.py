"""The looks that a stop takes at its tree: in prepare, right before the first signal, and again and again; and the verdict they lead to."""

from __future__ import annotations

import time
from typing import Any, Dict, Optional, Sequence, Tuple

from . import diagnose, evidence, files, stacks
from .case import Case, Verdict, Watched
from .evidence import Sample
from .procfs import Seen

Samples = Dict[Tuple[int, int], Sample]


def by_name(samples: Sequence[Sample]) -> Samples:
    """Samples by pid and start time."""
    return {(sample["seen"]["pid"], sample["seen"]["started"]): sample for sample in samples}


class Looks:
    """What was seen of the processes of a tree at up to four moments."""

    def __init__(self, earlier: Sequence[Sample]) -> None:
        self._earlier: Samples = by_name(earlier)  # in prepare: with `before`, how it worked when nothing was sent
        self._before: Samples = {}
        self._lately: Samples = {}
        self._at = 0.0

    def before_the_first(self, members: Sequence[Seen]) -> None:
        """Keeps how they are right before the first signal; later calls change nothing."""
        if not self._before:
            self._before = by_name(evidence.samples(members))

    def again(self, members: Sequence[Seen]) -> None:
        """Keeps how they are now, for the next verdict's rates."""
        self._lately, self._at = by_name(evidence.samples(members)), time.monotonic()

    def due(self) -> bool:
        """Whether enough time has gone by since then for a rate."""
        return bool(self._lately) and time.monotonic() - self._at >= evidence.APART

    def verdict(
        self, about: Seen, gone: bool, members: Sequence[Seen], signals: Sequence[str], exit: Optional[Dict[str, Any]] = None
    ) -> Verdict:
        """About one process of the tree; about what it left behind when it is `gone`. The look of now is kept for the next verdict."""
        now = by_name(evidence.samples([about, *(seen for seen in members if seen is not about)]))
        main = self._watched(about, now)
        if gone:
            main = main._replace(now=evidence.gone())
        kin = [self._watched(seen, now) for seen in members if (seen["pid"], seen["started"]) != (about["pid"], about["started"])]
        alive = [one for one in kin if one.now["seen"] is not None]
        self._lately, self._at = now, time.monotonic()
        printed = files.printed(main.before, main.now) if main.before and not gone else ""
        stack = (stacks.look(main.now) if signals and main.now["seen"] is not None else None) or {}
        frames, tripped = stack.get("frames", ()), stack.get("tripped")
        case = Case(main, tuple(signals), alive, members if gone else (), exit, printed, frames, tripped=tripped)
        return diagnose.judge(case)

    def _watched(self, seen: Seen, now: Samples) -> Watched:
        name = seen["pid"], seen["started"]
        return Watched(self._earlier.get(name), self._before.get(name), self._lately.get(name), now.get(name) or evidence.gone())
