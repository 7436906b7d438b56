"""verify: compiles the staged files in memory with the interpreter that the workload will use. No __pycache__ comes of it."""

from __future__ import annotations

import json
import os
import subprocess
import time
from typing import Any, Dict, List

from . import environment, program
from .faults import Fault, Refused

DEADLINE = 120.0

# Runs in the workload's interpreter, which may be any Python 3; reads [[staged path, live path], …], prints {"version", "faults"}.
COMPILE = """
import json, sys, warnings
warnings.simplefilter("ignore")
faults = []
for staged, live in json.load(sys.stdin):
    try:
        with open(staged, "rb") as stream:
            compile(stream.read(), live, "exec", 0, True)
    except SyntaxError as error:
        faults.append({"path": live, "line": error.lineno, "what": error.msg, "text": error.text})
    except Exception as error:
        faults.append({"path": live, "line": None, "what": ("%s: %s" % (type(error).__name__, error)).rstrip(": "), "text": None})
json.dump({"version": "%d.%d.%d" % sys.version_info[:3], "faults": faults}, sys.stdout)
"""


def verify(session: Any, request: Dict[str, Any]) -> Dict[str, Any]:
    """{"files", "interpreter", "version", "faults": [{"root", "path", "line", "what", "text"}], "seconds"}, all faults at once."""
    began = time.monotonic()
    staged = [(place, path) for place, path in session.staged if path.endswith(".py")]
    interpreter = _interpreter(session)
    answer = _compile(session, interpreter, [[place.new(path), place.live(path)] for place, path in staged])
    where = {place.live(path): (place.root, path) for place, path in staged}
    for fault in answer["faults"]:
        fault["root"], fault["path"] = where[fault["path"]]
    return dict(answer, files=len(staged), interpreter=interpreter, seconds=round(time.monotonic() - began, 3))


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


def _compile(session: Any, interpreter: str, files: List[List[str]]) -> Dict[str, Any]:
    try:
        done = subprocess.run(
            [interpreter, "-I", "-B", "-c", COMPILE], input=json.dumps(files).encode(), capture_output=True, timeout=DEADLINE, check=False,
            env=_environment(session),
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise Fault("no answer within %d s" % DEADLINE, where="verify: " + interpreter, todo="look at the target's load") from error
    except OSError as error:
        raise Refused("cannot be started: %s" % error.strerror, where="verify: " + interpreter, todo="mend the interpreter") from error
    try:
        return dict(json.loads(done.stdout))
    except ValueError as error:
        words = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise Fault(
            "it ended with %d: %s" % (done.returncode, words[-1] if words else "no words"), where="verify: " + interpreter,
            todo="see whether it runs at all in the target",
        ) from error  # fmt: skip
