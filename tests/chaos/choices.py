"""What a round does, drawn from a seed: each point meets each fault, in an order that only the seed knows."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

from tests.chaos.points import POINTS

WHOLE = ("stop-container", "freeze-container", "lock-container")  # hit the whole container: such a round has it for itself
FAULTS = (
    "kill-controller", "freeze-controller", "kill-ssh-session", "freeze-ssh-session", "kill-session", "kill-job", "kill-agent",
    "kill-minder", "kill-new", *WHOLE, "fill-target-disk", "fill-host-staging", "second-waits",
)  # fmt: skip
SMALL_DELAY, MOST_DELAY = 0.005, 0.05  # seconds between the event and the fault
SHORTEST, LONGEST = 0.5, 3.0  # seconds of a freeze


@dataclass(frozen=True)
class Choice:
    """One round. `before`: who started the old trainer. `variant`: which of two ways a fault has, 0 or 1. `via`: of the push."""

    seed: int
    number: int
    point: str
    fault: str
    delay: float
    seconds: float
    before: str
    recovery: str
    variant: int
    via: str

    @property
    def disk(self) -> str:
        """What is to lie on a small disk: "directory", "state" or nothing."""
        return ("directory", "state")[self.variant] if self.fault == "fill-target-disk" else ""

    def __str__(self) -> str:
        more = f" ({self.disk})" if self.disk else ""
        how = f"old by {self.before}, via {self.via}"
        return f"seed {self.seed} round {self.number}: {self.fault}{more} at {self.point} +{self.delay * 1000:.0f} ms, {how}"


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


def _choice(seed: int, number: int, point: str, fault: str) -> Choice:
    chance = random.Random(f"{seed}-{number}")
    return Choice(
        seed, number, point, fault, delay=chance.choice([0.0, chance.uniform(0, SMALL_DELAY), chance.uniform(0, MOST_DELAY)]),
        seconds=chance.uniform(SHORTEST, LONGEST), before=chance.choice(["hand", "hand", "deployctl"]),
        recovery=chance.choice(["restart", "resume"]), variant=chance.randint(0, 1), via=chance.choice(["push", "session"]),
    )  # fmt: skip
