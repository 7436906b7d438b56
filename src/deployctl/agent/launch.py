"""launch: starts the program itself, without a shell: a session of its own, stdin from nowhere, output appended to the log, every
signal at its default and nothing blocked. A small parent, the minder, keeps its exit status.
"""

from __future__ import annotations

import os
import time
from typing import Any, Dict, List, Optional, Tuple

from . import check, minder, newest, procfs, starts, state, tree, unit
from .faults import Fault
from .place import Place
from .starts import Start
from .title import COMM


def launch(job: Any, operation: Dict[str, Any]) -> None:
    """Emits `launched` and writes the record. Raises Fault when something runs already, or the program cannot be executed.

    operation: as "new", or as "before": what ran before, as it ran; unit: in a unit of systemd; settle: seconds that it must live where
    no check follows. What ran before in a unit runs in one again.
    """
    start = _start(job, operation)
    name = unit.name(job, operation["as"]) if _in_unit(job, operation) else None
    found = tree.find(job.workload, state.read_json(job.home.record), job.mark).top
    if found is not None:
        if not all(procfs.carries(found["pid"], entry) for entry in _marks(job, operation["as"])):
            raise Fault("it already runs as pid %d" % found["pid"], where=job.workload["name"], todo="see who started it")
        start = start._replace(argv=found["argv"]) if operation.get("newest") else start
        more = {"minder": _parent(found), "unit": name}
        _write_down(job, start, operation["as"], found["pid"], _offset_of(job, start.log), more)  # an earlier life of this job started it
    else:
        start = newest.filled(job, operation, start)
        handle, offset = _open_log(job, start)
        try:
            pid, parent = minder.spawn(job, start, handle) if name is None else unit.spawn(job, start, name)
        finally:
            os.close(handle)
        _write_down(job, start, operation["as"], pid, offset, {"minder": parent, "unit": name})
    if operation.get("settle") and not any(other["op"] == "check" for other in job.spec["do"]):
        check.check(job, {"alive": operation["settle"], "log": None, "within": operation["settle"]})


def _start(job: Any, operation: Dict[str, Any]) -> Start:
    if operation["as"] == "before":
        start = starts.as_before(job.workload, job.capture)
    elif operation.get("inherit"):
        start = starts.inheriting(job.workload, job.capture, operation)
    else:
        start = starts.new(dict(job.workload, **_asked(operation)), job.capture)
    return start._replace(environment=dict(start.environment, **_entries(job, operation["as"])))


def _in_unit(job: Any, operation: Dict[str, Any]) -> bool:
    if operation["as"] == "new":
        return bool(operation.get("unit"))
    known, before = job.spec["record"], job.before
    ours = known and before and (known["pid"], known["started"]) == (before["pid"], before["started"])
    return bool(ours and known.get("unit"))


def _parent(seen: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    """The minder of a process; None when it is gone."""
    glance = procfs.glance(seen["ppid"])
    return {"pid": glance.pid, "started": glance.started} if glance is not None and glance.comm == COMM else None


def _asked(operation: Dict[str, Any]) -> Dict[str, Any]:
    """What the operation says of the workload, in the workload's words."""
    asked = {name: operation[name] for name in ("directory", "environment", "log", "user")}
    return dict(asked, command=operation["argv"])


def _marks(job: Any, which: str) -> List[bytes]:
    """What a program carries by which we know that this run started it, as the new one or as what ran before."""
    return [job.mark, b"DEPLOYCTL_RUN=" + job.run.encode(), b"DEPLOYCTL_START=" + which.encode()]


def _entries(job: Any, which: str) -> Dict[str, str]:
    return dict(os.fsdecode(entry).split("=", 1) for entry in _marks(job, which))


def _open_log(job: Any, start: Start) -> Tuple[int, int]:
    """(descriptor, offset where this start's output begins); one marked line tells the starts apart."""
    try:
        os.makedirs(os.path.dirname(start.log), exist_ok=True)
        handle = os.open(start.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        if start.user is not None and os.fstat(handle).st_size == 0:
            os.fchown(handle, start.user.uid, start.user.gid)
    except OSError as error:
        raise Fault("cannot write the log: %s" % error.strerror, where=start.log, todo="mend its directory or rights") from error
    stamp = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    try:
        os.write(handle, _starting_line(job) + stamp.encode() + b"\n")
    except OSError:
        pass  # on a full disk the program matters more than the line
    return handle, os.fstat(handle).st_size


def _starting_line(job: Any) -> bytes:
    return ("--- deployctl: %s started by run %s, " % (job.workload["name"], job.run)).encode()


def _offset_of(job: Any, log: str) -> int:
    """Where the last start by this run begins in the log; its beginning when the line is not there."""
    try:
        return procfs.read(log).rfind(_starting_line(job)) + 1
    except OSError:
        return 0


def _pushed(job: Any) -> Dict[str, Dict[str, str]]:
    """SHA-256 of the files that this run brought, by destination and path."""
    roots = {files["root"] for operation in job.spec["do"] for files in operation.get("sets", [])}
    brought = {root: Place(root, job.run).about().get("files", {}) for root in sorted(roots)}
    return {root: {path: file["sha256"] for path, file in files.items()} for root, files in brought.items()}


def _write_down(job: Any, start: Start, which: str, pid: int, offset: int, more: Dict[str, Any]) -> None:
    """The record of what runs now, before anybody hears of it. flags: by name, as they were written (docs/flags.md)."""
    flags = job.workload.get("flags" if which == "new" else "flags_before", {})
    seen = procfs.look(pid) or {"pid": pid, "started": None, "boot": None}
    job.launched, job.launched_argv, job.started_at = seen, start.argv, time.time()
    identity = {name: seen[name] for name in ("pid", "started", "boot")}
    said = {
        **identity, "argv": start.argv, "directory": start.directory, "log": start.log, "log_offset": offset, "flags": flags,
        "environment": sorted(start.environment), **more,
    }  # fmt: skip
    job.record = record_of(job, dict(said, t=round(job.started_at, 3)))
    job.keep(job.home.record, job.record)
    job.emit("launched", sync=True, **said)


def record_of(job: Any, launched: Dict[str, Any]) -> Dict[str, Any]:
    """The record of a program, by the event of its launch."""
    names = ("pid", "started", "boot", "argv", "directory", "environment", "log", "log_offset", "flags", "minder", "unit")
    return {
        "version": state.VERSION, "workload": job.workload["name"], "run": job.run, **{name: launched.get(name) for name in names},
        "at": launched["t"], "who": job.spec["who"], "files": _pushed(job),
    }  # fmt: skip
