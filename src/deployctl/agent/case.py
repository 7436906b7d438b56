"""What the rules are asked about, and the form of what they answer. It knows no rule."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from . import calls, evidence, hearing, procfs
from .evidence import Sample, Thread
from .procfs import Seen

Verdict = Dict[str, Any]
Finding = Dict[str, Any]
Useless = Union[bool, str]  # what KILL would do: true (nothing), false (end it), "unknown"
CYCLES = 2  # switches of the main thread that a signal alone may account for
DEEPER = 0x100  # bytes that the stack grows by at least when a Python handler runs upon it (seen: 0x250 to 0x3a8)
MOST_EVIDENCE = 200  # characters of one line


class Watched(NamedTuple):
    """One process at up to four moments: twice in an earlier look, twice in this one."""

    earlier: Optional[Sample]
    before: Optional[Sample]
    lately: Optional[Sample]
    now: Sample


class Case(NamedTuple):
    """All that the rules look at."""

    main: Watched
    signals: Sequence[str] = ()  # what was sent or tried since the earlier look, in order
    kin: Sequence[Watched] = ()  # its living descendants
    survivors: Sequence[Seen] = ()  # what is left of the tree when the main process is gone
    exit: Optional[Dict[str, Any]] = None  # {"status"} or {"signal"} of the main process, when it is known
    printed: str = ""  # what came to its stdout and stderr since the earlier look
    stack: Sequence[str] = ()  # Python frames of the main thread, the innermost first: `function (file.py)`; empty: not known, or none
    stack_before: Sequence[str] = ()
    tripped: Optional[bool] = None  # whether Python has a signal whose handler it has not run; None: not known
    left: Optional[Dict[str, Any]] = None  # what a process that is gone has left behind (aftermath.py)

    @property
    def seen(self) -> Seen:
        """The process now; only rules that stand behind the one for its end may ask."""
        return dict(self.main.now["seen"])

    @property
    def before(self) -> Optional[Sample]:
        """The process as it was before the signals, if it was seen then."""
        return self.main.before if self.main.before and self.main.before["seen"] else None

    @property
    def signal(self) -> Optional[str]:
        """The last signal."""
        return self.signals[-1] if self.signals else None

    @property
    def thread(self) -> Optional[Thread]:
        """The main thread now."""
        return evidence.main_thread(self.main.now)

    def threads(self) -> List[Thread]:
        """The main thread at the moments at which it was seen, the latest last."""
        samples = (self.main.before, self.main.lately, self.main.now)
        return [thread for thread in map(evidence.main_thread, samples) if thread is not None]

    def heard(self) -> List[str]:
        """Those of the signals that the process could take: by the masks that it had when they were sent."""
        seen = self.before["seen"] if self.before else self.seen
        return [name for name in self.signals if not hearing.unheard(seen, name) and name not in self.seen["pending"]]

    def rate(self, name: str, whole: bool = False, baseline: bool = False, unit: float = 1.0) -> Optional[float]:
        """How fast a counter grows now, or grew in the earlier look; of the whole tree, or of the main process."""
        pairs = [(one.earlier, one.before) if baseline else (one.lately, one.now) for one in (self.main, *(self.kin if whole else ()))]
        found = [evidence.rate(old, new, name, unit) for old, new in pairs if new is not None]
        known = [number for number in found if number is not None]
        return sum(known) if known else None

    def cpu(self) -> Optional[float]:
        """Share of one core that the main process uses."""
        return self.rate("cpu_ticks", unit=procfs.TICKS)

    def demand(self, whole: bool = False, baseline: bool = False) -> Optional[float]:
        """Share of one core that it would use if it were alone: what it used, and what it waited for on a busy machine."""
        return self.rate("demand", whole, baseline, unit=1e9)

    @property
    def interpreter(self) -> Optional[str]:
        """'python', 'node', …, where the program is run by one."""
        return evidence.interpreter(self.main.now)

    def by_default(self) -> bool:
        """Whether the signal raises KeyboardInterrupt: a Python that handles INT and, unlike one with handlers of its own, not TERM."""
        seen = (self.before or self.main.now)["seen"]
        return bool(self.interpreter == "python" and self.heard()[-1:] == ["INT"] and "TERM" not in seen["caught"])

    def last_resort(self) -> str:
        """TERM where it would end the process or is handled and was not sent yet, else KILL."""
        fresh = "TERM" not in self.signals and not hearing.unheard(self.seen, "TERM")
        return "signal:TERM" if fresh else "signal:KILL"

    def moved(self) -> bool:
        """Whether the main thread waits somewhere else than before the signal."""
        old, new = evidence.main_thread(self.before), self.thread
        if old is None or new is None or not (old["known"] and new["known"]):
            return False
        return bool(old["call"] != new["call"])

    def handles(self) -> bool:
        """Whether a handler of the program's own runs upon what it interrupted: frames upon those of before, and a deeper stack."""
        if self.stack and self.stack_before:
            below = list(self.stack_before)
            upon = len(self.stack) > len(below) and list(self.stack[-len(below) :]) == below
            return upon and self._deeper()
        return self._deeper()

    def _deeper(self) -> bool:
        olds = [thread["call"]["sp"] for thread in map(evidence.main_thread, (self.main.earlier, self.before)) if thread and thread["call"]]
        news = [
            thread["call"]["sp"] for thread in map(evidence.main_thread, (self.main.lately, self.main.now)) if thread and thread["call"]
        ]
        return bool(olds and news) and min(olds) - max(news) >= DEEPER

    def cycles(self) -> bool:
        """Whether the main thread has been waking up and going to sleep, more than one signal would make it."""
        old, new = evidence.main_thread(self.before), self.thread
        if new is None:
            return False
        across = old is not None and new["switches"] - old["switches"] > CYCLES * max(1, len(self.signals))
        same = old is not None and calls.name(old["call"]) == calls.name(new["call"])
        return (across and same) or self.cycles_now()

    def cycles_now(self) -> bool:
        """Whether the main thread has gone to sleep anew between the two looks of now."""
        lately, new = evidence.main_thread(self.main.lately), self.thread
        return lately is not None and new is not None and bool(new["switches"] > lately["switches"])


def finding(
    verdict: Tuple[str, str], confidence: str, helps: str, useless: Useless, facts: Sequence[str] = (), aside: bool = False
) -> Finding:
    """What a rule found. aside: it is worth saying, and never the first thing to say."""
    return {
        "verdict": verdict[0], "detail": verdict[1], "confidence": confidence, "next": helps, "kill_useless": useless, "facts": list(facts),
        "aside": aside,
    }  # fmt: skip


def answer(case: Case, found: Sequence[Finding]) -> Verdict:
    """The verdict: the first finding, the names of the others, and the evidence of them all."""
    first = next((one for one in found if not one["aside"]), found[0])
    also = dict.fromkeys(one["verdict"] for one in found if one["verdict"] != first["verdict"])
    facts = [fact for one in (first, *(one for one in found if one is not first)) for fact in one["facts"]]
    unread = unreadable(case)
    lines = list(dict.fromkeys([*facts, *lines_of(case)])) + (["unreadable: %s" % " ".join(unread)] if unread else [])
    return {
        "verdict": first["verdict"], "detail": first["detail"], "confidence": first["confidence"], "also": list(also),
        "evidence": lines, "unreadable": unread, "next": first["next"], "kill_useless": first["kill_useless"],
    }  # fmt: skip


def unreadable(case: Case) -> List[str]:
    """The names of what could not be read now, or in the earlier look: it says nothing, and is not known to be well."""
    names = list(case.main.now["unreadable"])
    return list(dict.fromkeys(names + [name + " (before)" for name in (case.before or {}).get("unreadable", []) if name not in names]))


def lines_of(case: Case) -> List[str]:
    """What was read, one fact a line."""
    if case.main.now["seen"] is None:
        return _last_lines(case)
    seen, was, wchan = case.seen, case.before, case.main.now["wchan"]
    lines = ["state: %s, before %s" % (seen["state"], was["seen"]["state"] if was else "?"), "threads: %d" % seen["threads"]]
    lines += ["%s: %s" % (name, " ".join(seen[name])) for name in ("ignored", "caught", "blocked", "pending") if seen[name]]
    lines += ["parent: %d" % seen["ppid"]] if seen["state"] in procfs.DEAD else []
    lines += ["tracer: pid %d" % seen["traced"]] if seen["traced"] else []
    lines += ["waits in: %s" % wchan] if wchan else []
    lines += _thread_lines(case) + _rate_lines(case)
    lines += ["stack: %s" % " < ".join(case.stack[:6])] if case.stack else []
    lines += ["python: a signal has come, and its handler has not run"] if case.tripped else []
    said = [line.strip() for line in case.printed.splitlines() if line.strip()]
    return lines + (["printed since: %s" % said[-1][:MOST_EVIDENCE]] if said else [])


def _last_lines(case: Case) -> List[str]:
    """What is known of a process that is gone."""
    was = case.before["seen"] if case.before else None
    lines = (
        ["gone: pid %d, started %d, %s" % (was["pid"], was["started"], " ".join(was["argv"])[:120])] if was else ["gone: it is not there"]
    )
    lines += ["sent: %s" % " ".join(case.signals)] if case.signals else []
    lines += ["caught: %s" % " ".join(was["caught"])] if was and was["caught"] else []
    return lines + ["exit: %s %s" % (name, value) for name, value in (case.exit or {}).items() if name in ("status", "signal")]


def _thread_lines(case: Case) -> List[str]:
    old, new = evidence.main_thread(case.before), case.thread
    if new is None or not new["known"]:
        return []
    lines = ["main thread: %s" % _call(new)]
    if old is not None:
        lines.append("before: %s; %d switches since" % (_call(old), new["switches"] - old["switches"]))
    return lines


def _call(thread: Thread) -> str:
    call = thread["call"]
    if call is None:
        return "runs"
    shown = " ".join("%#x" % word for word in call["args"])
    return "%s(%s) sp %#x" % (calls.name(call) or "no call", shown, call["sp"])


def _rate_lines(case: Case) -> List[str]:
    cpu, written, was = case.cpu(), case.rate("written_bytes"), case.rate("written_bytes", baseline=True)
    lines = ["cpu: %.2f of a core" % cpu] if cpu is not None else []
    lines += ["written: %d bytes/s" % written] if written is not None else []
    return lines + (["written before: %d bytes/s" % was] if was is not None else [])
