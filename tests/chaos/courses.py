"""How a run goes when nobody disturbs it: what the trainer that ran before, the one that is launched and the playbook are like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

LADDER = ("INT 5s", "TERM 2s", "KILL 2s")
CHECK = {"alive": "0.3s", "log": r"step \d+", "within": "20s"}


@dataclass(frozen=True)
class Course:
    """`old` and `new`: words that the command lines of the two trainers have besides the common ones."""

    old: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    ladder: Any = LADDER
    check: Mapping[str, Any] = field(default_factory=lambda: dict(CHECK))


COURSES = {
    "well": Course(),
    "dies": Course(new=("--steps", "0")),  # the new one ends at once with a word about its flags: the run is undone
    "unwell": Course(check={**CHECK, "log": "a line that no trainer writes", "within": "1s"}),  # the same, and it has to be stopped
    "slow": Course(old=("--save-time", "3"), ladder={"ladder": ["INT 1s"], "extend": 0}),  # longer than the ladder: the job lingers
}
