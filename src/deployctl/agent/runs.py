"""The runs that a target remembers: which have no end, what an unfinished one had done, who ran what; and how one is taken back."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from . import lock, procfs, reserve, state, unit
from .faults import Refused

Event = Dict[str, Any]


class Past(NamedTuple):
    """What an earlier life of the job had done: where it was, when the old process was gone, which signals had gone out."""

    which: str = "do"
    at: int = 0
    stopped_at: Optional[float] = None
    rung: int = -1  # the index of the last rung that had begun, of the stop that was under way
    signalled: bool = False  # whether its signal is known to have gone out
    touched: bool = False  # whether a signal has gone out to what ran before
    why: str = ""  # why it had begun to undo
    cancelled: bool = False  # whether that was a person's wish
    launched: Optional[Event] = None  # what it launched last
    metrics: Tuple[Dict[str, Any], ...] = ()  # what the checks of operations that are over have measured


def events_of(home: state.Home, run: str) -> Iterator[Event]:
    """The events of a run; a torn line is passed over. Raises nothing for a run without a file."""
    try:
        with open(home.events(run), "rb") as lines:
            for line in lines:
                event = state.event_of(line)
                if event is not None:
                    yield event
    except OSError:
        return


def past(home: state.Home, run: str) -> Past:
    """Where the job of a run was when its life ended; the beginning for one that has not begun."""
    found = Past()
    measured: Tuple[Dict[str, Any], ...] = ()
    for event in events_of(home, run):
        if event["what"] == "op":
            again = (event["list"], event["index"]) == (found.which, found.at)
            if not again:
                found = found._replace(which=event["list"], at=event["index"], metrics=found.metrics + measured, rung=-1, signalled=False)
            measured = ()
        elif event["what"] == "launched":
            found = found._replace(launched=event)
        elif event["what"] in ("failed", "cancelled") and event.get("phase") == "cutover":
            found = found._replace(why=event["why"], cancelled=found.cancelled or event["what"] == "cancelled")
        elif event["what"] == "rung":
            found = found._replace(rung=event["index"], signalled=False, touched=found.touched or found.which == "do")
        elif event["what"] == "signalled":
            found = found._replace(signalled=True)
        elif event["what"] == "stopped" and found.which == "do":
            found = found._replace(stopped_at=event["t"])
        if event["what"] in ("checked", "failed") and event.get("metric"):
            measured = (event["metric"],)
    return found


def unfinished(home: state.Home) -> Optional[Dict[str, Any]]:
    """{"run", "op", "list", "since"} of the oldest run whose job has a file and no end, for who holds the lock; None when there is none.

    What is left of runs that have an end is removed.
    """
    found = list(with_job(home))
    for one in found:
        if one["op"] == "end":
            close(home, one["run"])
    return next((one for one in found if one["op"] != "end"), None)


def left(home: state.Home) -> Optional[Dict[str, Any]]:
    """The same for who only looks: None while the lock is held, since the job of a run without an end may be at work then."""
    found = (one for one in with_job(home) if one["op"] != "end")
    return None if lock.held(home.lock) else next(found, None)


def with_job(home: state.Home) -> Iterator[Dict[str, Any]]:
    """The runs whose job has a file, the oldest first: "op" is the operation that began last, or "end"."""
    for run in state.runs(home):
        if not os.path.lexists(home.job(run)):
            continue
        last: Event = {}
        began: Event = {}
        for last in events_of(home, run):
            began = last if last["what"] == "op" else began
        ended = last.get("what") == "end" and last.get("phase") == "cutover"
        yield {"run": run, "op": "end" if ended else began.get("op"), "list": began.get("list"), "since": last.get("t")}


def doing(home: state.Home, holder: Dict[str, Any]) -> Dict[str, Any]:
    """The holder of the lock and what its run does: "op" (an operation, or "prepare"), "until" (epoch seconds: a linger's end)."""
    until = None
    events = list(events_of(home, holder.get("run", "")))
    for event in events:
        if event["what"] in ("op", "lingering"):
            until = event["t"] + event["seconds"] if event["what"] == "lingering" else None
    return dict(holder, op=operation(events), until=until)


def operation(events: Sequence[Event]) -> str:
    """The operation that began last; "prepare" when none has."""
    return next((str(event["op"]) for event in reversed(events) if event["what"] == "op"), "prepare")


def holder(home: state.Home) -> Optional[Dict[str, Any]]:
    """Who holds the lock now, and what is done under it; None when nobody does."""
    return doing(home, lock.holder_of(home.lock) or {}) if lock.held(home.lock) else None


def close(home: state.Home, run: str) -> None:
    """Removes what only a run under way needs: the job's file, which holds secrets; then a cancellation, and room for a full disk."""
    state.remove(home.job(run), home.cancel(run), home.events(run) + state.RESERVE, *state.spares(home.record))
    reserve.give_up_behind(home.events(run))
    unit.remove(os.path.join(home.runs, run))


def job_of(home: state.Home, run: str) -> Optional[procfs.Seen]:
    """pid, started and boot of the job's last life; None before its first."""
    seen = None
    for event in events_of(home, run):
        if event["what"] == "cutover":
            seen = {"pid": event["job_pid"], "started": event["started"], "boot": event["boot"]}
    return seen


def alive(home: state.Home, run: str) -> bool:
    """Whether the job of the run lives."""
    seen = job_of(home, run)
    return seen is not None and procfs.same(seen)


def holds(home: state.Home, run: str) -> bool:
    """Whether the run holds the lock, in prepare too."""
    return lock.held(home.lock) and (lock.holder_of(home.lock) or {}).get("run") == run


def homes(session: Any, request: Dict[str, Any]) -> List[state.Home]:
    """The homes of all workloads of the target."""
    base = state.directory(request.get("state"))
    return [state.Home(base, name) for name in state.names(base)]


def holding(session: Any, request: Dict[str, Any]) -> state.Home:
    """The home that knows the run. Raises Refused when the target knows no such run."""
    run = request["run"]
    for home in homes(session, request):
        if os.path.lexists(home.events(run)):
            return home
    raise Refused("this target knows no run '%s'" % run, where="run", todo="`deployctl history --on TARGET` lists those that it knows")


def history(session: Any, request: Dict[str, Any]) -> Dict[str, Any]:
    """{"runs": [{"run", "workload", "begin", "end", "alive", "last", "op"}]}, the oldest first; begin and end are events or null."""
    found = []
    for home in homes(session, request):
        for run in state.runs(home):
            events = list(events_of(home, run))
            begin = next((event for event in events if event["what"] == "begin"), None)
            end = next((event for event in reversed(events) if event["what"] == "end"), None)
            item = {"run": run, "workload": home.name, "begin": begin, "end": end, "last": events[-1] if events else None}
            found.append(dict(item, op=operation(events), alive=not end and (alive(home, run) or holds(home, run))))
    return {"runs": sorted(found, key=lambda item: str(item["run"]))}


def cancel(session: Any, request: Dict[str, Any]) -> Dict[str, Any]:
    """{"alive": true}: asks the job of a run to take it back; it hears at its next look. Raises Refused when there is no such job."""
    home = holding(session, request)
    run = request["run"]
    if not alive(home, run) or not lock.held(home.lock):
        raise _nothing_to_cancel(home, run)
    state.write_json(home.cancel(run), request["who"])
    if not os.path.lexists(home.job(run)):  # it was closed meanwhile: its job's file goes first
        state.remove(home.cancel(run))
        raise _nothing_to_cancel(home, run)
    return {"alive": True}


def _nothing_to_cancel(home: state.Home, run: str) -> Refused:
    """What a run without a living job is, and what to do with it."""
    events = list(events_of(home, run))
    held = holder(home) or {}
    if any(one["run"] == run and one["op"] != "end" for one in with_job(home)):
        what, todo = "was killed in %s" % operation(events), "`deployctl resume %s` brings it to its end" % run
    elif held.get("run") == run:
        who = "%s@%s" % (held.get("user", "somebody"), held.get("host", "an unknown host"))
        what, todo = "is in prepare, led by %s" % who, "wait, or interrupt it there: nothing was changed by it yet"
    elif any(event["what"] == "end" for event in events):
        what, todo = "is over", "`deployctl history` says how it ended"
    else:
        what, todo = "was killed in prepare", "nothing was changed by it; there is nothing to take back"
    return Refused("run %s %s" % (run, what), where=home.name, todo=todo)
