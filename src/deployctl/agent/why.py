"""why: one process, or a workload's, looked at twice and judged. No signal, no lock, nothing is written."""

from __future__ import annotations

import os
import time
from typing import Any, Dict, List, Optional, Sequence, Tuple

from . import calls, diagnose, evidence, files, hearing, match, procfs, remains, runs, stacks, state, tree
from .case import Case, Watched
from .evidence import Sample
from .faults import Wrong
from .procfs import Seen

APART, LONGER = 0.6, 0.6  # seconds between the two looks; how much more where the main thread has not moved, to see a slow loop turn
MOST_KIN = 48  # processes of a tree that are looked at closely
Look = Dict[str, Any]


def why(session: Any, request: Dict[str, Any]) -> Dict[str, Any]:
    """{"verdict", …, "pid", "signals", "tree", "look", "unfinished"}: a verdict (diagnose.py), what INT, TERM and KILL would do, what was
    seen, and the run of the workload that has no end (runs.left).

    request: pid, or match (a text), or workload ({"name", and match where a playbook names it}); since (the `look` of an earlier answer),
    after (names of signals that were sent since), state.
    """
    since: Optional[Look] = request.get("since")
    subject = _subject(request, since)
    if subject.seen is None and (since is None or procfs.hidden(since["pid"])):
        return dict(_absent(subject, since), unfinished=subject.unfinished)
    look = _look(subject.seen, since, subject.mark, bool(request.get("after")))
    signals = request.get("after") or subject.signals or _seen_signals(look, since)
    return dict(_answer(subject, look, since, list(signals)), unfinished=subject.unfinished)


class Subject:
    """Which process is meant, and what is recorded of it."""

    def __init__(self, seen: Optional[Seen] = None, mark: Optional[bytes] = None) -> None:
        self.seen, self.mark = seen, mark
        self.named: Optional[int] = None  # a pid that a person named
        self.signals: List[str] = []
        self.exit: Optional[Dict[str, Any]] = None
        self.missing = "no such process"
        self.said: Optional[Dict[str, Any]] = None  # what the last stop has found, with looks of its own from before its signals
        self.unfinished: Optional[Dict[str, Any]] = None


def _subject(request: Dict[str, Any], since: Optional[Look]) -> Subject:
    pid = request.get("pid") or (since["pid"] if since is not None and not request.get("match") else None)
    if since is not None and request.get("pid") not in (None, since["pid"]):
        raise Wrong(
            "the earlier look is about pid %d, not %d" % (since["pid"], request["pid"]), where="--since", todo="name that pid, or none"
        )
    if pid is not None:
        found = Subject(procfs.look(pid))
        found.named = request.get("pid")
        return found
    if request.get("match"):
        found = Subject(tree.find({"name": None, "match": request["match"]}, None).top)
        found.missing = "no process matches '%s'" % request["match"]
        return found
    return _recorded(request["workload"], state.directory(request.get("state")))


def _recorded(workload: Dict[str, Any], base: str) -> Subject:
    """The process of a workload, the signals that its last run sent, and how it ended if it did."""
    home = state.Home(base, workload["name"])
    record, mark = state.read_json(home.record), os.fsencode(home.mark)
    if workload.get("command") or workload.get("match"):
        subject = Subject(tree.find(match.known_by(workload), record, mark).top, mark)
    else:
        subject = Subject(procfs.look(record["pid"]) if record is not None and procfs.same(record) else None, mark)
    subject.missing = "'%s' does not run" % workload["name"]
    subject.unfinished = runs.left(home)
    exit_ = state.read_json(home.exit)
    if record and exit_ and (exit_.get("pid"), exit_.get("started")) == (record["pid"], record["started"]):
        subject.exit = exit_
    pid = subject.seen["pid"] if subject.seen else record["pid"] if record else None
    after = subject.seen["since"] - 1.0 if subject.seen else 0.0  # it is rounded, and by another clock
    subject.signals, subject.said = _sent(home, pid, after) if pid else ([], None)
    return subject


def _sent(home: state.Home, pid: int, after: float) -> Tuple[List[str], Optional[Dict[str, Any]]]:
    """The signals that the newest run with a stop sent to that process, and what it found in the end if that did not end it."""
    for run in reversed(state.runs(home)):
        told = [event for event in runs.events_of(home, run) if event["what"] in ("rung", "not-stopped") and pid in event["pids"]]
        rungs = [event["signal"] for event in told if event["what"] == "rung" and event["t"] >= after]
        if rungs:
            return rungs, told[-1] if told[-1]["what"] == "not-stopped" else None
    return [], None


def _absent(subject: Subject, since: Optional[Look]) -> Dict[str, Any]:
    """Nothing of it runs, and nothing is known of how it was; or it is there, and /proc does not show it to us."""
    pid = subject.named if since is None else since["pid"]
    alive = tree.tree([], subject.mark) if subject.mark else []
    case = Case(Watched(None, None, None, evidence.gone()), tuple(subject.signals), (), alive, subject.exit)
    found = diagnose.judge(case)
    if pid is not None and procfs.hidden(pid):
        lines = ["pid %d: it is there, and /proc does not show it to us (hidepid)" % pid, "unreadable: all of /proc/%d" % pid]
        found.update(verdict="no-permission", detail="hidden", confidence="proven", next="none", kill_useless=True, evidence=lines)
    else:
        found["evidence"] = list(dict.fromkeys([subject.missing, *found["evidence"]]))
    return dict(found, pid=pid, after=subject.signals, signals={}, tree=[_row(evidence.sample(seen), None) for seen in alive], look=since)


def _look(seen: Optional[Seen], since: Optional[Look], mark: Optional[bytes], sent: bool) -> Look:
    """Two looks at the process and its tree, or what is known of one that is gone; an earlier look's names of things are kept."""
    other = since is not None and seen is not None and (*remains.key(seen), seen["boot"]) != (since["pid"], since["started"], since["boot"])
    if since is not None and (seen is None or other):
        return dict(since, samples=[evidence.gone(), evidence.gone()], kin=[], time=time.time())
    assert seen is not None
    first = _everyone(seen, mark)
    stack = stacks.look(first[remains.key(seen)])
    began = time.monotonic()
    time.sleep(APART)
    while sent and time.monotonic() - began < APART + LONGER and _rests(seen, first[remains.key(seen)]):
        time.sleep(0.1)
    second = {one: evidence.sample(sample["seen"]) for one, sample in first.items()}
    pairs = {one: [sample, second[one]] for one, sample in first.items()}
    main = pairs.pop(remains.key(seen))
    stack = stacks.both(stack, stacks.look(main[1]))
    directories = _directories([main[0], *(pair[0] for pair in pairs.values())])
    kept = {ino for ino, _ in remains.locked()}
    named = files.naming(main[0]["nspid"][-1] if main[0]["nspid"] else seen["pid"], directories)
    return {
        "pid": seen["pid"], "started": seen["started"], "boot": seen["boot"], "time": time.time(),
        "ticks": int(time.clock_gettime(time.CLOCK_BOOTTIME) * procfs.TICKS), "samples": main, "kin": list(pairs.values()), "stack": stack,
        "directories": directories, "locks": named,
        "locked": sorted({file["ino"] for pair in [main, *pairs.values()] for file in pair[0]["files"] if file["ino"] in kept}),
    }  # fmt: skip


def _everyone(seen: Seen, mark: Optional[bytes]) -> Dict[Tuple[int, int], Sample]:
    """A sample of the process and of each of its tree, the process first."""
    family = [one for one in tree.tree([seen["pid"]], mark) if remains.key(one) != remains.key(seen)]
    samples = {remains.key(one): evidence.sample(one) for one in [seen, *family[:MOST_KIN]]}
    return {one: sample for one, sample in samples.items() if sample["seen"] is not None or one == remains.key(seen)}


def _rests(seen: Seen, first: Sample) -> bool:
    """Whether the main thread sleeps where it slept."""
    old, now = evidence.main_thread(first), procfs.glance(seen["pid"])
    if old is None or now is None or now.state != "S":
        return False
    try:
        status = procfs.status_of("/proc/%d/task/%d/status" % (seen["pid"], old["tid"]))
    except OSError:
        return False
    return bool(int(status.get("voluntary_ctxt_switches", "0")) == old["switches"])


def _directories(samples: Sequence[Sample]) -> List[str]:
    """Where a lock or a half-written file of the tree would lie: its directories, and those of the files that it writes."""
    found: List[str] = []
    for sample in samples:
        found += [sample["cwd"] or ""] + [os.path.dirname(file["path"]) for file in sample["files"]]
    return [path for path in dict.fromkeys(found) if path.startswith("/") and path not in ("/", "/dev/shm")][:16]


def _seen_signals(look: Look, since: Optional[Look]) -> List[str]:
    """The signals that are known to have been sent, without anybody's word: what waits in a queue, what Python has not handled yet
    where that can be one only, and the interrupt that the log shows.
    """
    now = look["samples"][-1]["seen"]
    if now is None:
        return []
    pending = [name for name in now["pending"] if name in ("HUP", "INT", "QUIT", "TERM", "KILL")]
    printed = files.printed(since["samples"][-1], look["samples"][-1]) if since is not None else ""
    polite = [name for name in hearing.POLITE if name in now["caught"]]
    taken = polite if len(polite) == 1 and (look.get("stack") or {}).get("tripped") else []
    return pending or (["INT"] if "\nKeyboardInterrupt" in "\n" + printed else taken)


def _answer(subject: Subject, look: Look, since: Optional[Look], signals: List[str]) -> Dict[str, Any]:
    old = since["samples"] if since is not None else [None, None]
    lately, now = look["samples"]
    main = Watched(old[0], old[1] or (lately if now["seen"] is None else None), lately, now)
    stack: Dict[str, Any] = {}
    left: Optional[Dict[str, Any]] = None
    alive: List[Seen] = []
    if now["seen"] is None:
        look = known = since if since is not None else dict(look, samples=[lately])
        alive = remains.survivors(known, subject.mark)
        left = remains.left(known, alive)
    else:
        stack = look["stack"] or {}
    kin = _kin(look, since)
    printed = files.printed(old[1], now) if old[1] else files.last_words(now) if signals else ""
    was = (since or {}).get("stack") or {}
    case = Case(
        main, tuple(signals), kin, alive, subject.exit, printed, tuple(stack.get("frames", ())), tuple(was.get("frames", ())),
        stack.get("tripped"), left,
    )  # fmt: skip
    found = _stale_name(subject, look, _with_record(subject, since, diagnose.judge(case)))
    effects = (
        hearing.effects(now["seen"], (now["cgroup"] or {}).get("frozen"), bool(now["flags"] & evidence.EXITING)) if now["seen"] else {}
    )
    if found["verdict"] == "uninterruptible":
        effects = {name: {"heard": False, "does": "kernel"} for name in effects}
        effects["KILL"] = {"heard": True, "does": "end"} if found["kill_useless"] is False else effects["KILL"]
    rows = [_row(one.now, one.lately) for one in (main, *kin) if one.now["seen"]] or [_row(evidence.sample(seen), None) for seen in alive]
    return dict(found, pid=look["pid"], after=signals, signals=effects, tree=rows, look=look)


def _kin(look: Look, since: Optional[Look]) -> List[Watched]:
    olds = {remains.key(pair[-1]["seen"]): pair for pair in (since or {}).get("kin", []) if pair[-1]["seen"]}
    found = []
    for lately, now in look["kin"]:
        if now["seen"] is not None and now["seen"]["state"] not in procfs.DEAD:
            old = olds.get(remains.key(now["seen"]), [None, None])
            found.append(Watched(old[0], old[1], lately, now))
    return found


def _with_record(subject: Subject, since: Optional[Look], found: Dict[str, Any]) -> Dict[str, Any]:
    """What the last stop has found counts where this look, which has none from before, can only guess."""
    said = subject.said
    if said is None or since is not None or found["confidence"] != "hint" or said.get("confidence") in (None, "hint"):
        return found
    kept = {name: said[name] for name in ("verdict", "detail", "confidence", "next", "kill_useless") if name in said}
    also = [word for word in (found["verdict"], *found["also"]) if word != said["verdict"]]
    line = "the stop of run %s, after %s: %s" % (said.get("run"), " ".join(subject.signals), said["verdict"])
    return dict(found, also=also, evidence=[line, *(said.get("evidence") or []), *found["evidence"]], **kept)


def _stale_name(subject: Subject, look: Look, found: Dict[str, Any]) -> Dict[str, Any]:
    """A pid that a person named, and that a file names which is older than the process: the file means another one."""
    seen = look["samples"][-1]["seen"]
    old = [file for file in look["locks"] if seen and subject.named and file["written"] < seen["since"] - 2]
    if not old:
        return found
    said = ["%s names pid %d and is older than that process" % (file["path"], look["pid"]) for file in old]
    also = [found["verdict"], *found["also"]]
    return dict(
        found, verdict="pid-reused", detail="stale-pid-file", confidence="strong", next="none", kill_useless=True,
        also=[word for word in also if word != "running"], evidence=[*said, *found["evidence"]],
    )  # fmt: skip


def _row(now: Sample, lately: Optional[Sample]) -> Dict[str, Any]:
    """One process of the tree, for a person: what it is and what it does."""
    seen, thread = now["seen"] or {}, evidence.main_thread(now)
    cpu, written = evidence.rates(lately, now)
    return {
        "pid": seen.get("pid"), "ppid": seen.get("ppid"), "state": seen.get("state"), "argv": seen.get("argv"), "comm": seen.get("comm"),
        "threads": seen.get("threads"), "call": calls.family(thread) if thread else "", "cpu": cpu, "written": written,
        "gpu": now["gpu"], "ignored": [name for name in hearing.POLITE if name in seen.get("ignored", [])],
    }  # fmt: skip
