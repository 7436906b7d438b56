"""The rounds as lines and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tests.chaos.choices import FAULTS
from tests.chaos.courses import COURSES
from tests.chaos.faults import NO_VICTIM
from tests.chaos.invariants import Broken
from tests.chaos.points import POINTS
from tests.chaos.round import MISSED, Result


def line(result: Result) -> str:
    """One round."""
    word = "BROKEN " + ", ".join(sorted({broken.name for broken in result.broken})) if result.broken else "ok"
    more = "".join(f" {name}={value}" for name, value in (("attach", result.attach), ("resume", result.resume)) if value is not None)
    return f"{result.choice}: {result.struck}; first={result.first}{more}; {result.seconds:.1f} s; {word}"


def tables(results: Sequence[Result]) -> str:
    """Points, faults, courses, strangers, and what broke."""
    return "\n".join([*_points(results), "", *_faults(results), "", *_courses(results), _strangers(results), "", *_broken(results)])


def never_hit(results: Sequence[Result]) -> list[str]:
    """The points and faults with no hit at all: of these nothing was shown."""
    hit = {name for result in results if result.hit for name in (result.choice.point, result.choice.fault)}
    return [name for name in (*POINTS, *FAULTS) if name not in hit]


def _points(results: Sequence[Result]) -> list[str]:
    lines = [_head("point")]
    for point in POINTS:
        lines.append(f"{point:<20} {_counts([result for result in results if result.choice.point == point])}")
    return lines


def _faults(results: Sequence[Result]) -> list[str]:
    lines = [f"{_head('fault')}  first run's status (times)"]
    for fault in FAULTS:
        of = [result for result in results if result.choice.fault == fault]
        ends = Counter(result.first for result in of if result.hit)
        lines.append(f"{fault:<20} {_counts(of)}  {', '.join(f'{status} ({times})' for status, times in sorted(ends.items()))}")
    return lines


def _courses(results: Sequence[Result]) -> list[str]:
    lines = [_head("course")]
    return lines + [f"{name:<20} {_counts([result for result in results if result.choice.course == name])}" for name in COURSES]


def _strangers(results: Sequence[Result]) -> str:
    rounds = Counter(whose for result in results for whose in set(result.given))
    told = "".join(f", {whose} in {times}" for whose, times in sorted(rounds.items()))
    return f"strangers in {sum(bool(result.given) for result in results)} rounds{told}"


def _head(what: str) -> str:
    return f"{what:<20} {'rounds':>6} {'hits':>6} {'no victim':>10} {'missed':>7} {'broken':>7}"


def _counts(of: Sequence[Result]) -> str:
    missed, none = sum(one.struck == MISSED for one in of), sum(one.struck == NO_VICTIM for one in of)
    return f"{len(of):>6} {sum(one.hit for one in of):>6} {none:>10} {missed:>7} {sum(bool(one.broken) for one in of):>7}"


def _broken(results: Sequence[Result]) -> list[str]:
    bad = [result for result in results if result.broken]
    lines = [f"{len(results)} rounds, {len(bad)} with a broken invariant"]
    for name, times in Counter(broken.name for result in bad for broken in _once(result)).most_common():
        alone = sum({broken.name for broken in result.broken} == {name} for result in bad)
        lines.append(f"{name:<14} {times:>4} rounds, in {alone} of them the only one")
    for result in bad:
        lines.append(f"{result.choice}: {result.struck}; kept in {result.kept}")
        lines += [f"   {broken.name}: {broken.detail}" for broken in result.broken]
    return lines


def _once(result: Result) -> list[Broken]:
    return list({broken.name: broken for broken in result.broken}.values())
