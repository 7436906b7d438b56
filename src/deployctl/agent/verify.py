"""verify: looks at the staged files before anything is stopped: compiles them with the interpreter that the workload will use, imports
modules and runs a command in the tree as it will be. Nothing of it is left.
"""

from __future__ import annotations

import os
import time
from typing import Any, Callable, Dict, List, Optional

from . import compiling, environment, pieces, program, shadow, trial
from .faults import Refused
from .place import Place

BOM = b"\xef\xbb\xbf"
IMPORT = "import importlib, sys; importlib.import_module(sys.argv.pop(1))"
Fault = Dict[str, Any]


def verify(session: Any, request: Dict[str, Any]) -> Dict[str, Any]:
    """{"files", "interpreter", "version", "faults": [{"path", "line", "what", "text"}], "warnings": [{"path", "what"}], "seconds"}.

    request: compile (default true), imports (modules), command (argv), time (seconds for both together). All faults at once.
    """
    began = time.monotonic()
    wanted = [(place, path) for place, path in session.staged if path.endswith(".py")] if request.get("compile", True) else []
    interpreter = _interpreter(session)
    names = {place.live(path): path for place, path in wanted}
    files = [[place.new(path), place.live(path)] for place, path in wanted]
    version, faults = compiling.compile_all(interpreter, files, _environment(session), session.wire.heed)
    for fault in faults:
        fault["path"] = names[fault["path"]]
    if request.get("compile", True):
        faults += [fault for place, path in session.staged for fault in _first_line(place, path)]
    if not faults:
        faults = _trials(session, interpreter, request)
    answer = {"files": len(wanted), "interpreter": interpreter, "version": version, "faults": faults}
    return dict(answer, warnings=_warnings(session), seconds=round(time.monotonic() - began, 3))


def _trials(session: Any, interpreter: str, request: Dict[str, Any]) -> List[Fault]:
    imports, command = request.get("imports", []), request.get("command")
    if not imports and not command:
        return []
    until = time.monotonic() + request["time"]
    checks = [("import " + module, [interpreter, "-B", "-c", IMPORT, module]) for module in imports]
    if command:
        checks.append(("command " + command[0], command))
    with shadow.trees(session) as trees:
        found = [trial.check(session.workload, name, argv, trees, until, session.wire.heed) for name, argv in checks]
    return [fault for fault in found if fault is not None]


def _interpreter(session: Any) -> str:
    """The workload's own Python; where its program is none, the python3 of its environment."""
    found = session.program
    if found is not None and os.path.basename(found.interpreter).startswith("python"):
        return str(found.interpreter)
    path = _environment(session)["PATH"]
    python = program.locate("python3", path, session.workload["directory"])
    if python is None:
        raise Refused("there is no python3 to compile with in PATH %s" % path, where="verify", todo="install one, or leave the step out")
    return python


def _environment(session: Any) -> Dict[str, str]:
    return environment.of(session.workload, session.capture)


def _first_line(place: Place, path: str) -> List[Fault]:
    """What keeps the kernel from starting a script: a carriage return belongs to the interpreter's name, and a BOM hides the `#!`."""
    if not os.stat(place.new(path)).st_mode & 0o111:
        return []
    with open(place.new(path), "rb") as stream:
        head = stream.read(256)
    line = head.split(b"\n")[0]
    what = ""
    if line.startswith(BOM + b"#!"):
        what = "a byte order mark stands before its '#!', so it cannot be executed"
    elif line.startswith(b"#!") and line.endswith(b"\r"):
        what = "its first line ends with a carriage return, so its interpreter is not found"
    return [{"path": path, "line": 1, "what": what, "text": None}] if what else []


def _warnings(session: Any) -> List[Dict[str, str]]:
    """Files that may have been cut short on their way to the controller."""
    heed = session.wire.heed
    found = [(path, _cut_short(place.new(path), place.live(path), heed)) for place, path in session.staged]
    return [{"path": path, "what": what} for path, what in found if what]


def _cut_short(new: str, live: str, heed: Callable[[], None]) -> Optional[str]:
    try:
        now, before = os.stat(new).st_size, os.stat(live).st_size
    except OSError:
        return None
    if now >= before:
        return None
    if not now:
        return "it is empty, and was not (%d bytes)" % before
    with open(new, "rb") as one, open(live, "rb") as other:
        if not pieces.begins(other, one, heed):
            return None
    return "it is no more than the first %d of the old one's %d bytes" % (now, before)
