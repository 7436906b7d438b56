"""Compiles files in memory with another interpreter, in a child: whatever that raises, or dies of, is a fault of the file."""

from __future__ import annotations

import json
import os
import subprocess
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from . import bounded
from .faults import Fault, Refused

DEADLINE = 60.0  # seconds for one child; a file that takes longer by itself is at fault
MEMORY = 2 << 30  # bytes of address space: a file must not take the memory of the run that it is to replace

# Runs in the workload's interpreter, which may be any Python 3; reads [[staged path, live path], …], prints a line of JSON for the version,
# one before each file, one for each fault.
COMPILE = """
import json, sys, warnings
warnings.simplefilter("ignore")
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (%d, %d))
except (ImportError, ValueError, OSError):
    pass
def say(**fields):
    sys.stdout.write(json.dumps(fields) + "\\n")
    sys.stdout.flush()
say(version="%%d.%%d.%%d" %% sys.version_info[:3])
for number, (staged, live) in enumerate(json.load(sys.stdin)):
    say(at=number)
    try:
        with open(staged, "rb") as stream:
            compile(stream.read(), staged, "exec", 0, True)  # by this name it finds the line that it quotes
    except SyntaxError as error:
        say(path=live, line=error.lineno, what=error.msg, text=error.text)
    except BaseException as error:
        say(path=live, line=None, what=("%%s: %%s" %% (type(error).__name__, error)).rstrip(": "), text=None)
say(at=None)
""" % (MEMORY, MEMORY)

GLANCE = 0.1  # seconds between two looks whether somebody waits for it
Files = List[List[str]]  # [staged path, live path]
Heed = Callable[[], None]


def compile_all(interpreter: str, files: Files, environment: Mapping[str, str], heed: Heed) -> Tuple[str, List[Dict[str, Any]]]:
    """(the interpreter's version, faults {"path", "line", "what", "text"}). Raises Fault or Refused for one that does not run.

    What `heed` raises ends it.
    """
    version, faults, begin = "", [], 0
    while True:
        lines, ended = _run(interpreter, files[begin:], environment, heed)
        if not lines:
            raise Fault("it ended with %s" % ended, where="verify: " + interpreter, todo="see whether it runs at all in the target")
        version = lines[0]["version"]
        faults += [line for line in lines if "what" in line]
        at = [line["at"] for line in lines if "at" in line]
        if at[-1:] == [None]:
            return version, faults
        begin, guilty = _blame(begin, at, ended)
        if guilty is not None:
            faults.append({"path": files[guilty][1], "line": None, "what": "the interpreter did not survive it: %s" % ended, "text": None})
            begin = guilty + 1


def _blame(begin: int, at: List[int], ended: str) -> Tuple[int, Optional[int]]:
    """(where to go on, the index of the file at fault): after a deadline that several files shared the last one gets a time of its own."""
    last = begin + (at[-1] if at else 0)
    return (last, None) if ended == TIME_OVER and last > begin else (last, last)


TIME_OVER = "no end within %d s" % DEADLINE


def _run(interpreter: str, files: Files, environment: Mapping[str, str], heed: Heed) -> Tuple[List[Dict[str, Any]], str]:
    """(what it printed, how it ended)."""
    pipe = subprocess.PIPE
    with open(os.memfd_create("deployctl-files"), "w+b") as names:  # no pipe: nobody has to feed it while the child is waited for
        names.write(json.dumps(files).encode())
        names.seek(0)
        try:
            child = subprocess.Popen(
                [interpreter, "-I", "-B", "-c", COMPILE], stdin=names, stdout=pipe, stderr=pipe, env=environment, start_new_session=True
            )
        except OSError as error:
            raise Refused("cannot be started: %s" % error.strerror, where="verify: " + interpreter, todo="mend the interpreter") from error
    with child:
        out, err, ended = _hear(child, heed)
    words = err.decode("utf-8", "replace").strip().splitlines()
    said = words[-1] if words else "no words"
    ended = ended or ("signal %d" % -child.returncode if child.returncode < 0 else "%d: %s" % (child.returncode, said))
    return [line for line in map(_parsed, out.splitlines()) if line], ended


def _hear(child: "subprocess.Popen[bytes]", heed: Heed) -> Tuple[bytes, bytes, str]:
    """(its stdout, its stderr, TIME_OVER where the deadline ended it)."""
    until, ended = time.monotonic() + DEADLINE, ""
    try:
        while True:
            try:
                return (*child.communicate(timeout=GLANCE), ended)
            except subprocess.TimeoutExpired:
                heed()
            if time.monotonic() > until:
                ended = TIME_OVER
                bounded.end(child, bounded.DYING)
    finally:
        if child.returncode is None:
            bounded.end(child, bounded.DYING)


def _parsed(line: bytes) -> Optional[Dict[str, Any]]:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
