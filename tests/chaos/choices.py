"""What a round does, drawn from a seed: each point meets each fault, in an order that only the seed knows."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

from tests.chaos.points import POINTS, STOPPING, UNDO

WHOLE = ("stop-container", "freeze-container", "lock-container")  # hit the whole container: such a round has it for itself
DISKS = ("fill-target-disk", "keep-disk-full")
FAULTS = (
    "kill-controller", "freeze-controller", "interrupt", "kill-ssh-session", "freeze-ssh-session", "kill-session", "kill-job",
    "kill-job-thrice", "kill-agent", "kill-minder", "kill-new", "cancel", *WHOLE, *DISKS, "fill-host-staging", "second-waits",
)  # fmt: skip
SMALL_DELAY, MOST_DELAY = 0.005, 0.05  # seconds between the event and the fault
SHORTEST, LONGEST = 0.5, 3.0  # seconds of a freeze
MOST_GAP = 0.1  # seconds between two signals
BEFORE = {
    "hand": "old by hand",
    "deployctl": "old by deployctl",
    "recycled": "old by hand, a stranger has the recorded pid",
}


@dataclass(frozen=True)
class Choice:
    """One round. `before`: who started the old trainer. `course`: how the run goes by itself (tests/chaos/courses.py).
    `variant`: which of two ways a fault has, 0 or 1. `signals`: of an interrupt, `gap` seconds apart. `via`: of the push.
    """

    seed: int
    number: int
    point: str
    fault: str
    delay: float
    seconds: float
    before: str
    course: str
    recovery: str
    variant: int
    signals: tuple[str, ...]
    gap: float
    via: str

    @property
    def disk(self) -> str:
        """What is to lie on a small disk: "directory", "state" or nothing."""
        return ("directory", "state")[self.variant] if self.fault in DISKS else ""

    @property
    def how(self) -> str:
        """Which of its ways the fault takes."""
        if self.fault == "interrupt":
            return f" ({f' +{self.gap * 1000:.0f} ms '.join(self.signals)})"
        return f" ({self.disk})" if self.disk else " (then its job is killed)" if self.fault == "cancel" and self.variant else ""

    def __str__(self) -> str:
        where = f"{self.fault}{self.how} at {self.point} +{self.delay * 1000:.0f} ms"
        return f"seed {self.seed} round {self.number}: {where}, {self.course}, {BEFORE[self.before]}, via {self.via}"


def draw(seed: int, rounds: int, fault: str | None = None, point: str | None = None) -> list[Choice]:
    """The rounds of a seed; those of a larger count begin with those of a smaller one."""
    chance = random.Random(seed)
    product = list(itertools.product([point] if point else POINTS, [fault] if fault else FAULTS))
    chosen: list[Choice] = []
    while len(chosen) < rounds:
        chance.shuffle(product)
        chosen += [_choice(seed, len(chosen) + number, *pair) for number, pair in enumerate(_spread(product))]
    return chosen[:rounds]


def _spread(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The same pairs, each point once before any point comes again: so that few rounds meet them all."""
    seen: dict[str, int] = {}
    turns = []
    for pair in pairs:
        seen[pair[0]] = seen.get(pair[0], 0) + 1
        turns.append((seen[pair[0]], pair))
    return [pair for _, pair in sorted(turns, key=lambda turn: turn[0])]


def courses_to(point: str) -> tuple[str, ...]:
    """The courses on which a run comes to the point, as often as they are to be drawn."""
    if point in STOPPING:
        return ("unwell",)
    if point in UNDO or point == "failed":
        return ("dies", "unwell")
    if point == "lingering":
        return ("slow",)
    return ("well", "well", "slow") if point == "checked" else ("well", "well", "well", "slow", "dies", "unwell")


def _choice(seed: int, number: int, point: str, fault: str) -> Choice:
    chance = random.Random(f"{seed}-{number}")
    return Choice(
        seed, number, point, fault, delay=chance.choice([0.0, chance.uniform(0, SMALL_DELAY), chance.uniform(0, MOST_DELAY)]),
        seconds=chance.uniform(SHORTEST, LONGEST), before=chance.choice(tuple(BEFORE)), course=chance.choice(courses_to(point)),
        recovery=chance.choice(["restart", "resume"]), variant=chance.randint(0, 1),
        signals=tuple(chance.choices(("INT", "TERM", "HUP"), k=chance.randint(1, 2))),
        gap=chance.choice([0.0, chance.uniform(0, MOST_GAP)]),
        via="push" if fault == "fill-host-staging" else chance.choice(["push", "session"]),
    )  # fmt: skip
