"""Whether what deployctl said of a run, in its record and by exit statuses, is what is there when nothing of it is at work any more.

What each word and status promises is that of docs/exit-status.md, docs/runs.md and docs/architecture.md section 6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from deployctl import journal
from tests.chaos.eyes import Sight
from tests.chaos.ground import Ground
from tests.chaos.invariants import FLAG, Broken

Event = dict[str, Any]
Excused = Callable[[Event], bool]  # whether the round itself has ended, after that word, what the word says runs
ANY: frozenset[str] = frozenset()
KILLED = -9


@dataclass(frozen=True)
class World:
    """`runs`: nothing, old (that very process), again (its command line in another one), new, another, several. `files`: old, new, torn."""

    runs: str
    files: str
    seen: tuple[Sight, ...] = ()

    def __str__(self) -> str:
        pids = "".join(f" (pid {one.inner}{', new' if FLAG in one.argv else ', old'})" for one in self.seen)
        return f"what runs: {self.runs}{pids}, files {self.files}"


@dataclass(frozen=True)
class Promise:
    """The exit status that belongs to an outcome, and the worlds in which it is true."""

    status: int
    runs: frozenset[str]
    files: frozenset[str]


def _promise(status: int, runs: str, files: str) -> Promise:
    return Promise(status, frozenset(runs.split()), frozenset(files.split()))


PROMISES = {
    "running": _promise(0, "new", "new"),
    "refused": _promise(1, "old", "old"),
    "rolled-back": _promise(1, "old again", "old"),
    "cancelled": _promise(1, "old again", "old"),
    "left": _promise(1, "old again new", ""),
    "unreachable": _promise(3, "old", "old"),
    "not-stopped": _promise(4, "old", "old"),
    "lingering": _promise(4, "old nothing", "old"),
    "unfinished": _promise(4, "old again new nothing", ""),  # a signal that it took may end it yet
    "down": _promise(5, "nothing", ""),
    "busy": _promise(6, "old", "old"),
    "detached": _promise(7, "", ""),
    "interrupted": _promise(130, "old", "old"),
}
GOES_ON = ("lingering", "detached")  # what the job does after them is its own to tell
UNTOUCHED = ("refused", "unreachable", "busy", "interrupted")  # said of the run, whoever else changes something


def look(ground: Ground, old: Sight | None) -> World:
    """What is there now; `old` ran before."""
    seen, live = ground.sights(), ground.live()
    files = "new" if live == ground.wanted() else "old" if live == ground.old else "torn"
    return World(_runs(seen, old), files, tuple(seen))


def _runs(seen: list[Sight], old: Sight | None) -> str:
    if len(seen) != 1:
        return "several" if seen else "nothing"
    if FLAG in seen[0].argv:
        return "new"
    return "old" if seen[0] == old else "again" if old is not None and seen[0].argv == old.argv else "another"


def events_of(ground: Ground, run: str) -> list[Event]:
    """The target's events of a run; torn lines are left out."""
    return journal.read(ground.events_file(run))


def end_of(ground: Ground, run: str) -> Event | None:
    """The last word of a run, None when it has none."""
    return _last_end(events_of(ground, run))


def _last_end(events: list[Event]) -> Event | None:
    return next((event for event in reversed(events) if event["what"] == "end"), None)


def newest_end(ground: Ground) -> Event | None:
    """The end that was said last, of whatever run."""
    ends = [end for path in ground.path(ground.runs).glob("*.jsonl") if (end := end_of(ground, path.stem))]
    return max(ends, key=lambda end: float(end["t"]), default=None)


def told(ground: Ground, run: str) -> Event | None:
    """The end that the controller of a run has told by itself, else the job's as it has it: who follows the run later adds that one."""
    events = [event for path in ground.journals() if path.stem == run for event in journal.read(path)]
    return _last_end([event for event in events if event.get("phase") != "cutover"]) or _last_end(events)


def end_is_true(world: World, end: Event, excused: Excused, who: str = "the record") -> Iterator[Broken]:
    """What an end says is there, and its exit status is the one of its outcome."""
    promise, what = PROMISES.get(end["outcome"]), f"{who} says '{end['outcome']}' (status {end['status']})"
    if promise is None or promise.status != end["status"]:
        yield Broken("claim", f"{what}; no restart ends so")
        return
    runs = not promise.runs or world.runs in promise.runs
    files = not promise.files or world.files in promise.files
    if not files or not (runs or (world.runs == "nothing" and excused(end))):
        yield Broken("claim", f"{what}; {world}")


def restart_is_true(ground: Ground, run: str, status: int, world: World, excused: Excused, blind: bool = False) -> Iterator[Broken]:
    """A controller that ended by itself has told an end with its exit status; where the job goes on after it, that one's end counts.

    `blind`: it could not see that the job goes on no more.
    """
    said, end, who = told(ground, run), end_of(ground, run), "the first restart"
    if said is None or said["status"] != status:
        yield Broken("claim", f"{who} ended with {status}; the end that it has told is {said and said['status']}")
        return
    done = {event["what"] for event in events_of(ground, run)}
    began = "cutover" in done
    if status in (7, 130) and began != (status == 7):
        yield Broken("claim", f"{who} ended with {status}; the cut-over has {'begun' if began else 'not begun'}")
    if status == 7 and end is None and not blind:
        yield Broken("claim", f"{who} ended with 7 (the job goes on); the run has no end; {world}")
    if not (said["outcome"] in GOES_ON and done & {"stopped", "end"}):
        yield from end_is_true(world, said, excused, who)


def later_is_true(world: World, status: int, who: str) -> Iterator[Broken]:
    """Of a run that may have found another trainer than the old one: 0 is said only when the new one runs, 5 only when nothing does."""
    if (status == 0 and (world.runs, world.files) != ("new", "new")) or (status == 5 and world.runs != "nothing"):
        yield Broken("claim", f"{who} ended with {status}; {world}")


def resume_is_true(ground: Ground, run: str, had: Event | None, status: int, before: World, old: Sight | None) -> Iterator[Broken]:
    """A run without an end has one now, which is true and has this status; for any other one it was refused, and nothing was changed."""
    end, world = end_of(ground, run), look(ground, old)
    if end is not None and end != had:
        if status != end["status"]:
            yield Broken("claim", f"resume ended with {status}; the run's end is {end['status']}")
        yield from end_is_true(world, end, lambda _: False, "the record after the resume")
    elif had is None and any(event["what"] == "cutover" for event in events_of(ground, run)):
        yield Broken("claim", f"resume ended with {status}; the run has no end all the same; {world}")
    elif status != 1 or world != before:
        yield Broken("claim", f"resume ended with {status}; there was nothing to resume; before: {before}; now: {world}")


def cancel_is_true(ground: Ground, run: str, status: int) -> Iterator[Broken]:
    """0: the run was taken back; 4, 5: as of the run, which may have no end; 7: as of the run; 1, 3, 6: nothing to cancel, or too late."""
    end = end_of(ground, run)
    wanted = {0: (1,), 4: (4, None), 5: (5, None)}.get(status)
    if wanted is not None and (end and end["status"]) not in wanted:
        yield Broken("claim", f"cancel ended with {status}; the run's end is {end and end['status']}")
    elif status == 7 and end is None:
        yield Broken("claim", "cancel ended with 7 (the job goes on); the run has no end")
    elif wanted is None and status not in (1, 3, 6, 7):
        yield Broken("claim", f"cancel ended with {status}")


def attach_is_true(ground: Ground, run: str, status: int, world: World) -> Iterator[Broken]:
    """The status of the run's end; without one 4 when something runs, 5 when nothing does; 1 when the target never heard of it."""
    events = events_of(ground, run)
    end = _last_end(events)
    if not events:
        wanted = {1, 2, 130}  # the last one: its file was made, and no word of it had room
    elif end is not None:
        wanted = {int(end["status"])}
    else:
        wanted = {4} if world.seen else {5}
        if not any(event["what"] == "cutover" for event in events):  # it ended in prepare: nothing was changed
            wanted |= {1, 3, 130}
    if status not in wanted:
        last = events[-1]["what"] if events else "nothing"
        yield Broken("attach", f"attach ended with {status}, not {sorted(wanted)}; the run's last word is '{last}'; {world}")
