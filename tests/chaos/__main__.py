"""`python -m tests.chaos`: see docs/chaos.md."""

from __future__ import annotations

import argparse
import fcntl
import os
import secrets
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tests.chaos import choices, report
from tests.chaos.choices import WHOLE, Choice
from tests.chaos.points import POINTS
from tests.chaos.round import Result, Round
from tests.lab.lab import Lab

Told = Callable[[Result], None]
ENOUGH = 500  # rounds after which each point and each fault has been hit


def options(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description="Runs the restart job with a fault at each point of it.")
    parser.add_argument("--rounds", type=int, default=500, help="how many (%(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="what the rounds are drawn from; a fresh one is printed")
    parser.add_argument("--target", default="ct201", help="a container of the lab (%(default)s)")
    parser.add_argument(
        "--jobs", type=int, default=1, help="rounds at once (%(default)s); a fault of the whole container has it for itself"
    )
    parser.add_argument("--only", choices=choices.FAULTS, metavar="FAULT", help="this fault alone: " + ", ".join(choices.FAULTS))
    parser.add_argument("--at", choices=POINTS, metavar="POINT", help="this point alone: " + ", ".join(POINTS))
    parser.add_argument("--round", type=int, default=None, metavar="N", help="this round of the seed alone (with the same --only and --at)")
    parser.add_argument("--keep", type=Path, default=None, metavar="DIRECTORY", help="where events and logs of broken rounds go")
    parser.add_argument("--verbose", action="store_true", help="a line a round")
    return parser.parse_args(words)


def play(chosen: Sequence[Choice], target: str, keep: Path, jobs: int, told: Told) -> list[Result]:
    """Plays the rounds: those that hit one site at once, those that hit the container one by one after them."""
    lab = Lab.current()

    def one(choice: Choice) -> Result:
        with _turn(lab, target, alone=choice.fault in WHOLE):
            result = Round(choice, lab, target, keep).play()
        told(result)
        return result

    if jobs == 1:
        return [one(choice) for choice in chosen]
    with ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(one, [choice for choice in chosen if choice.fault not in WHOLE]))
    return results + [one(choice) for choice in chosen if choice.fault in WHOLE]


@contextmanager
def _turn(lab: Lab, target: str, alone: bool) -> Iterator[None]:
    """Several drivers may work on one container, but none while another stops or freezes it."""
    handle = os.open(lab.directory / f"chaos-{target}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield
    finally:
        os.close(handle)


def main(words: Sequence[str] | None = None) -> int:
    """1 when an invariant broke, or when many rounds have left a point or a fault without a hit."""
    given = options(words)
    seed = secrets.randbelow(1 << 31) if given.seed is None else given.seed
    keep = given.keep or Path(tempfile.mkdtemp(prefix="deployctl-chaos-"))
    chosen = choices.draw(seed, max(given.rounds, (given.round or 0) + 1), given.only, given.at)
    chosen = chosen if given.round is None else [chosen[given.round]]
    print(f"seed {seed}, {len(chosen)} rounds on {given.target}; broken ones are kept in {keep}", flush=True)
    results: list[Result] = []

    def told(result: Result) -> None:
        results.append(result)
        if given.verbose or result.broken:
            print(report.line(result), flush=True)

    for number in (signal.SIGINT, signal.SIGTERM):  # a shell's `&` leaves an ignored INT, which the trainers would inherit
        signal.signal(number, signal.default_int_handler)
    try:
        play(chosen, given.target, keep, given.jobs, told)
    except KeyboardInterrupt:
        print("interrupted; what was played:")
    print(report.tables(results))
    missing = report.never_hit(results) if len(results) >= ENOUGH and not (given.only or given.at) else []
    if missing:
        print(f"never hit: {', '.join(missing)}")
    return 1 if missing or any(result.broken for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
