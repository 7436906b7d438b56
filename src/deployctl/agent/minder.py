"""The minder: the small parent of a launched program. It waits for it and writes down how it ended; it holds no lock and no secret."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any, Dict, List, Tuple

from . import cgroup, procfs, slim, title
from .become import become
from .faults import Fault
from .starts import Start

SURROUNDINGS = {"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}


def spawn(job: Any, start: Start, log: int) -> Tuple[int, Dict[str, Any]]:
    """(the program's pid; {"pid", "started"} of the minder). Raises Fault with the reason when it could not be executed."""
    sources = [module.__loader__.get_source(module.__name__) for module in (title, slim)]  # type: ignore[union-attr]
    answer, tell = os.pipe()
    minder = os.fork()
    if not minder:
        try:
            os.close(answer)
            _mind(job, start, log, tell, sources)
        finally:
            os._exit(1)
    os.close(tell)
    with os.fdopen(answer) as lines:
        said: Dict[str, Any] = {}
        for line in lines.read().splitlines():
            said.update(json.loads(line))
    if "pid" not in said or "what" in said:
        os.waitpid(minder, 0)
        raise Fault(said.get("what", "the minder died"), where=said.get("where", start.file), todo=said.get("todo", "see who killed it"))
    glance = procfs.glance(minder)
    return int(said["pid"]), {"pid": minder, "started": glance.started if glance is not None else None}


def _mind(job: Any, start: Start, log: int, tell: int, sources: List[str]) -> None:
    """Starts the program as the minder's child; then the minder is a new, small Python that knows nothing but how to wait."""
    os.setsid()
    for descriptor in job.private:
        os.close(descriptor)
    child = os.fork()
    if not child:
        try:
            become(start, log)
        except Fault as fault:
            _say(tell, what=fault.what, where=fault.where, todo=fault.todo)
        finally:
            os._exit(127)
    seen = procfs.look(child) or {}
    counter = cgroup.kill_counter(child)
    known = {"pid": child, "started": seen.get("started"), "run": job.run, "begun": round(time.time(), 3)}
    if counter is not None:
        known["memory_of"] = "container" if cgroup.in_container() else "machine"
    _say(tell, pid=child)
    os.close(tell)
    os.close(log)
    words = ["deployctl: minder of %s (run %s)" % (job.workload["name"], job.run), str(child), job.home.exit, json.dumps(known)]
    words += [counter, str(slim.kills(counter))] if counter is not None else []
    code = "import sys\nfor source in sys.argv[1:3]:\n    exec(source, globals())\nmind(sys.argv[3:])"
    try:
        os.execve(sys.executable, [sys.executable, "-I", "-S", "-B", "-c", code, *sources, *words], SURROUNDINGS)
    except OSError:
        slim.show_as = title.show_as  # type: ignore[attr-defined]
        slim.mind(words)


def _say(tell: int, **fields: Any) -> None:
    os.write(tell, json.dumps(fields).encode() + b"\n")
