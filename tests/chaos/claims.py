"""Whether what deployctl said of a run, in its record and by exit statuses, is what is there when nothing of it is at work any more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from deployctl import journal
from tests.chaos.eyes import Sight
from tests.chaos.ground import Ground
from tests.chaos.invariants import FLAG, Broken

Event = dict[str, Any]
UNTOUCHED = ("refused", "interrupted", "busy", "unreachable", "not-stopped")


def events_of(ground: Ground, run: str) -> list[Event]:
    """The target's events of a run; torn lines are left out."""
    return journal.read(ground.events_file(run))


def end_of(ground: Ground, run: str) -> Event | None:
    """The last word of a run, None when it has none."""
    return next((event for event in reversed(events_of(ground, run)) if event["what"] == "end"), None)


def newest_end(ground: Ground) -> Event | None:
    """The end that was said last, of whatever run."""
    ends = [end for path in ground.path(ground.runs).glob("*.jsonl") if (end := end_of(ground, path.stem))]
    return max(ends, key=lambda end: float(end["t"]), default=None)


def end_is_true(ground: Ground, end: Event, old: Sight | None) -> Iterator[Broken]:
    """What the record's last word says runs."""
    seen, what = ground.sights(), f"the record says '{end['outcome']}' (status {end['status']})"
    live, new = ground.live(), ground.wanted()
    if end["outcome"] == "running":
        if len(seen) != 1 or FLAG not in seen[0].argv or live != new:
            yield Broken("claim", f"{what}; {_what(seen)}, files {'new' if live == new else 'not new'}")
    elif end["outcome"] == "rolled-back":
        if len(seen) != 1 or (old is not None and seen[0].argv != old.argv) or live != ground.old:
            yield Broken("claim", f"{what}; {_what(seen)}, files {'old' if live == ground.old else 'not old'}")
    elif end["outcome"] == "down":
        if seen:
            yield Broken("claim", f"{what}; {_what(seen)}")
    elif end["outcome"] in UNTOUCHED and (seen != [old] or live != ground.old):
        yield Broken(
            "claim", f"{what}; {_what(seen)}, the old one was {old and old.inner}; files {'old' if live == ground.old else 'not old'}"
        )


def status_is_true(ground: Ground, status: int, who: str) -> Iterator[Broken]:
    """0 is said only when the new one runs, 5 only when nothing does."""
    seen = ground.sights()
    if status == 0 and (len(seen) != 1 or FLAG not in seen[0].argv):
        yield Broken("claim", f"{who} ended with 0; {_what(seen)}")
    if status == 5 and seen:
        yield Broken("claim", f"{who} ended with 5 (down); {_what(seen)}")


def attach_is_true(ground: Ground, run: str, status: int) -> Iterator[Broken]:
    """The status of the run's end; without one 4 when something runs, 5 when nothing does; 1 when the target never heard of it."""
    end, seen = end_of(ground, run), ground.sights()
    events = events_of(ground, run)
    if not events:
        wanted = {1, 2, 130}  # the last one: its file was made, and no word of it had room
    elif end is not None:
        wanted = {int(end["status"])}
    else:
        wanted = {4} if seen else {5}
        if not any(event["what"] == "cutover" for event in events):  # it ended in prepare: nothing was changed
            wanted |= {1, 3, 130}
    if status not in wanted:
        last = events[-1]["what"] if events else "nothing"
        yield Broken("attach", f"attach ended with {status}, not {sorted(wanted)}; the run's last word is '{last}'; {_what(seen)}")


def _what(seen: list[Sight]) -> str:
    return f"{len(seen)} run" + "".join(f" (pid {one.inner}{', new' if FLAG in one.argv else ', old'})" for one in seen)
