"""The session: one talk with one controller, from the marker to the end of input. It leads nothing; it answers."""

from __future__ import annotations

import errno
import importlib
import os
import signal
import sys
import time
from typing import Any, Dict, List, Optional, Set, Tuple

from . import match, state
from .faults import Fault, Wrong, bug
from .title import show_as
from .wire import HungUp, Request, Wire

OPERATIONS = {
    "open": ("opening", "open_run"),
    "look": ("opening", "look"),
    "manifest": ("manifest", "manifest"),
    "place": ("manifest", "make_place"),
    "stage": ("stage", "stage"),
    "verify": ("verify", "verify"),
    "status": ("status", "status"),
    "adopt": ("adopt", "adopt"),
    "job": ("follow", "job"),
    "finish": ("follow", "finish"),
    "resume": ("follow", "resume"),
    "attach": ("follow", "attach"),
    "why": ("why", "why"),
    "host": ("host", "host"),
    "records": ("records", "records"),
    "history": ("runs", "history"),
    "cancel": ("runs", "cancel"),
    "restore": ("restore", "restore"),
    "releases": ("releases", "releases"),
    "forget": ("releases", "forget"),
}  # imported when asked for: each module costs time to compile in the target
AHEAD = ("manifest", "stage", "verify", "diagnose", "golive", "ladder", "launch", "check", "follow")  # what a run asks for later


class Session:
    """What the session holds for its workload: the lock, the run's events, what it staged, what it saw."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.run = ""
        self.target = ""
        self.who: Dict[str, Any] = {}
        self.workload: Dict[str, Any] = {}
        self.home: Any = None
        self.lock: Optional[int] = None
        self.events: Optional[state.EventFile] = None
        self.record: Optional[Dict[str, Any]] = None
        self.before: Optional[Dict[str, Any]] = None
        self.capture: Optional[Dict[str, Any]] = None
        self.samples: List[Dict[str, Any]] = []
        self.program: Any = None
        self.places: Dict[str, Any] = {}
        self.staged: List[Tuple[Any, str]] = []
        self.brought: Set[str] = set()  # what the pushes of the run bring, changed or not, and what they remove: absolute paths
        self.leaving: Set[str] = set()
        self.handed_over = False  # a job was forked: what was staged is its business now
        self.ahead = list(AHEAD)

    def settle(self, request: Request) -> state.Home:
        """Takes over what the request says of run and workload."""
        self.run, self.target, self.who = request.get("run", ""), request["target"], request.get("who", {})
        self.workload = match.known_by(request["workload"])
        home = self.home = state.Home(state.directory(request.get("state")), self.workload["name"])
        show_as("deployctl: session of %s (run %s)" % (self.workload["name"], self.run or "none"))
        return home

    def append(self, events: List[Dict[str, Any]]) -> None:
        """Writes the controller's events into the run's event file."""
        for event in events:
            if self.events is not None:
                self.events.append(event)

    def clean(self) -> None:
        """Takes back what was staged, unless a job has it now."""
        if not self.handed_over:
            for place in reversed(list(self.places.values())):  # one may lie in another
                place.remove()
        self.places = {}

    def serve(self) -> None:
        """Answers until the controller says close. Raises HungUp when it leaves without a word."""
        while True:
            self.look_ahead()
            request = self.wire.next()
            assert request is not None
            if self.events is not None:  # until `open` has begun the file, its request carries them
                self.append(request.pop("events", []))
            if request["op"] == "close":
                self.clean()
                self.wire.send({"id": request.get("id"), "answer": {}})
                return
            self.wire.send(dict({"id": request.get("id")}, **self.answer(request)))

    def look_ahead(self) -> None:
        """Compiles what a run will ask for, while the controller is not heard: it hashes, packs, or is far away."""
        while self.events is not None and self.ahead and self.wire.quiet():
            importlib.import_module("." + self.ahead.pop(0), __package__)

    def answer(self, request: Request) -> Dict[str, Any]:
        """{"answer": …} or {"error": …}; a bug of ours is an error with its place, not a silent end."""
        try:
            if request["op"] not in OPERATIONS:
                raise Wrong("'%s' is no operation" % request["op"], where="session", todo="report it")
            module, function = OPERATIONS[request["op"]]
            operation = getattr(importlib.import_module("." + module, __package__), function)
            return {"answer": operation(self, request)}
        except Fault as fault:
            return {"error": fault.as_dict()}
        except HungUp:
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
                full = Fault("the disk is full", where=error.filename or "", todo="make room there; " + self._so_far())
                return {"error": full.as_dict()}
            return {"error": bug(error, self._so_far() + "; report it with this line").as_dict()}

    def _so_far(self) -> str:
        """What an operation that broke off has left."""
        if self.handed_over:
            return "a job was begun: `deployctl status` says what became of it"
        return "nothing live was touched by this step"

    def leave(self, reason: str) -> None:
        """The controller is gone: in prepare the run ends here, with a record that says so."""
        if self.events is not None and not self.handed_over:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # by it the transport to this machine hurries us when it lasts
            self.clean()
            last = self.last_words()
            self.append(last)
            if not any(event["what"] == "end" for event in last):
                self.events.say("prepare", "end", sync=True, status=130, outcome="interrupted", process=None, down=None, reason=reason)

    def last_words(self) -> List[Dict[str, Any]]:
        """The events of a `close` that came while an operation was at work, before the controller left."""
        try:
            request = self.wire.next(timeout=0)
        except HungUp:
            return []
        return request.get("events", []) if request is not None and request["op"] == "close" else []


def main(nonce: str) -> None:
    """Says the marker, then serves. Descriptors 0 and 1 are given away, so nothing that we start can spoil the talk."""
    began = time.time()
    wire = Wire(_private(0, os.open(os.devnull, os.O_RDONLY)), _private(1, 2))
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    show_as("deployctl: session")
    hello = {
        "version": state.VERSION,
        "python": "%d.%d.%d" % sys.version_info[:3],
        "executable": sys.executable,
        "uid": os.geteuid(),
        "node": os.uname().nodename,
        "time": began,
    }
    session = Session(wire)
    try:
        wire.send_marker(nonce, hello)
        session.serve()
    except HungUp as reason:
        session.leave(str(reason))


def _private(number: int, instead: int) -> int:
    private = os.dup(number)
    os.dup2(instead, number)
    return private
