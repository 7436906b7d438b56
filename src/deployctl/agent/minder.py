"""The minder: the small parent of a launched program. It waits for it and writes down how it ended; it holds no lock and no secret."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any, Dict, List, NamedTuple, Tuple

from . import cgroup, procfs, slim, title
from .become import become
from .faults import Fault
from .starts import Start

SURROUNDINGS = {"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}
Answer = Dict[str, Any]


class Order(NamedTuple):
    """What a minder must know: of which workload and run, where an end is written down, the sources that it runs as a Python of its own."""

    workload: str
    run: str
    exit: str
    sources: List[str]


def order(job: Any) -> Order:
    """The order for the minder of what the job launches."""
    sources = [module.__loader__.get_source(module.__name__) for module in (title, slim)]  # type: ignore[union-attr]
    return Order(job.workload["name"], job.run, job.home.exit, sources)


def spawn(job: Any, start: Start, log: int) -> Tuple[int, Dict[str, Any]]:
    """(the program's pid; {"pid", "started"} of the minder). Raises Fault with the reason when it could not be executed."""
    wanted = order(job)
    answer, tell = os.pipe()
    minder = os.fork()
    if not minder:
        try:
            os.close(answer)
            os.setsid()
            for descriptor in job.private:
                os.close(descriptor)
            mind(wanted, start, log, tell)
        finally:
            os._exit(1)
    os.close(tell)
    with os.fdopen(answer) as lines:
        said = heard(lines.read())
    try:
        return judged(said, start)
    except Fault:
        os.waitpid(minder, 0)
        raise


def heard(text: str) -> Answer:
    """What minder and program have said, together."""
    said: Answer = {}
    for line in text.splitlines():
        said.update(json.loads(line))
    return said


def judged(said: Answer, start: Start) -> Tuple[int, Dict[str, Any]]:
    """(the program's pid; its minder). Raises Fault when the exec did not come about."""
    if "pid" not in said or "what" in said:
        raise Fault(said.get("what", "the minder died"), where=said.get("where", start.file), todo=said.get("todo", "see who killed it"))
    return int(said["pid"]), said["minder"]


def mind(wanted: Order, start: Start, log: int, tell: int) -> None:
    """Starts the program as a child; then this process becomes a new, small Python that knows nothing but how to wait.

    tell: hears JSON lines, {"pid", "minder"} or {"what", "where", "todo"}, and its end when the program is executed.
    """
    child = os.fork()
    if not child:
        try:
            become(start, log)
        except Fault as fault:
            _say(tell, what=fault.what, where=fault.where, todo=fault.todo)
        finally:
            os._exit(127)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # who ends a whole unit ends the program; its end is to be written down
    seen, own = procfs.look(child) or {}, procfs.glance(os.getpid())
    counter = cgroup.kill_counter(child)
    known = {"pid": child, "started": seen.get("started"), "run": wanted.run, "begun": round(time.time(), 3)}
    if counter is not None:
        known["memory_of"] = "container" if cgroup.in_container() else "machine"
    _say(tell, pid=child, minder={"pid": os.getpid(), "started": own.started if own is not None else None})
    os.close(tell)
    os.close(log)
    words = ["deployctl: minder of %s (run %s)" % (wanted.workload, wanted.run), str(child), wanted.exit, json.dumps(known)]
    words += [counter, str(slim.kills(counter))] if counter is not None else []
    code = "import sys\nfor source in sys.argv[1:3]:\n    exec(source, globals())\nmind(sys.argv[3:])"
    try:
        os.execve(sys.executable, [sys.executable, "-I", "-S", "-B", "-c", code, *wanted.sources, *words], SURROUNDINGS)
    except OSError:
        slim.show_as = title.show_as  # type: ignore[attr-defined]
        slim.mind(words)


def _say(tell: int, **fields: Any) -> None:
    os.write(tell, json.dumps(fields).encode() + b"\n")
