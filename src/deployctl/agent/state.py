"""What the target keeps of its workloads: where, and how it is written so that a crash leaves the old or the new text.

docs/architecture.md section 5 draws the directory.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from typing import Any, Dict, List, Optional

from . import reserve, shared

VERSION = 1
NEW = ".new"  # the ending of a file that is being written
KEPT_RUNS = 50  # event files of a workload
KEPT_FOR = 90 * 86400.0  # seconds that an event file is kept
RESERVE, RESERVED = ".reserve", 1 << 16  # bytes
SPARES = 2  # of a record: a run writes it at its launch, and once more when it brings back what ran


def directory(named: Optional[str] = None) -> str:
    """The state directory: the one that the target names, /var/lib/deployctl for root, else the user's own."""
    if named:
        return named
    if os.geteuid() == 0:
        return "/var/lib/deployctl"
    base = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(base, "deployctl")


def read_json(path: str) -> Optional[Dict[str, Any]]:
    """The object in the file; None when there is none, or when it is damaged."""
    try:
        with open(path, encoding="utf-8") as stream:
            data = json.load(stream)
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) else None


def write_json(path: str, data: Dict[str, Any], private: bool = False, spare: Optional[str] = None) -> None:
    """Replaces the file as a whole, fsynced: a reader sees the old object or the new one. `private`: not for a group that shares the state.

    spare: a file that lies ready for it and has room; it becomes the new one. What a killed writer left is swept by `Home.sweep`, or by
    the next writer.
    """
    text = json.dumps(data).encode("ascii")
    new = spare or path + NEW
    if spare is None and os.path.lexists(new):
        os.unlink(new)  # it may be another operator's
    handle = shared.open_file(new, os.O_WRONLY | (0 if spare else os.O_CREAT | os.O_TRUNC), private)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(text)
            stream.truncate()
            os.fsync(stream.fileno())
        os.replace(new, path)
    except BaseException:
        os.unlink(new)
        raise
    sync_directory(os.path.dirname(path))


def spares(path: str) -> List[str]:
    """The files that may lie ready for a record on a full disk."""
    return ["%s.%d%s" % (path, number, NEW) for number in range(1, SPARES + 1)]


def remove(*paths: str) -> None:
    """Removes the files that are there."""
    for path in paths:
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass


def sync_directory(path: str) -> None:
    """Makes renames in the directory durable."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Home:
    """The places of one workload in the state directory."""

    def __init__(self, base: str, name: str) -> None:
        self.base, self.name = base, name
        self.path = os.path.join(base, "workloads", name)
        self.lock = os.path.join(self.path, "lock")
        self.record = os.path.join(self.path, "record.json")
        self.exit = os.path.join(self.path, "exit.json")
        self.roots = os.path.join(self.path, "roots.json")
        self.runs = os.path.join(self.path, "runs")

    def make(self) -> None:
        """Makes the directories of the workload."""
        shared.make_directory(self.runs)

    def events(self, run: str) -> str:
        """The event file of a run."""
        return os.path.join(self.runs, run + ".jsonl")

    def job(self, run: str) -> str:
        """The job file of a run."""
        return os.path.join(self.runs, run + ".job")

    def cancel(self, run: str) -> str:
        """The file that tells the job of a run that a person takes it back."""
        return os.path.join(self.runs, run + ".cancel")

    @property
    def mark(self) -> str:
        """What every process of the workload carries in its environment: DEPLOYCTL_MARK=…"""
        return "DEPLOYCTL_MARK=" + self.path

    def sweep(self) -> None:
        """Removes what killed writers left half written; one of them may be a job's file, which holds secrets. Needs the lock."""
        for directory in (self.path, self.runs):
            for name in os.listdir(directory):
                if name.endswith(NEW):
                    os.unlink(os.path.join(directory, name))

    def prune(self) -> None:
        """Makes room for the run that begins: with it there are KEPT_RUNS, by count and by age, and those without an end.

        All files of any other run go; a run's id begins with its time.
        """
        known = runs(self)
        oldest = time.strftime("%Y%m%d-%H%M%S", time.gmtime(time.time() - KEPT_FOR))
        newest = {run for run in known[-(KEPT_RUNS - 1) :] if run >= oldest}
        kept = {run for run in known if run in newest or os.path.lexists(self.job(run))}
        for name in os.listdir(self.runs):
            if name.split(".")[0] not in kept:
                remove(os.path.join(self.runs, name))


def names(base: str) -> List[str]:
    """The workloads of which this state directory knows."""
    try:
        return sorted(os.listdir(os.path.join(base, "workloads")))
    except OSError:
        return []


def roots(home: Home) -> List[str]:
    """The destinations at which the workload has had a place."""
    return list((read_json(home.roots) or {}).get("roots", []))


def add_root(home: Home, root: str) -> None:
    """Adds a destination to them."""
    known = roots(home)
    if root not in known:
        write_json(home.roots, {"roots": [*known, root]})


def runs(home: Home) -> List[str]:
    """The ids of the runs that have an event file, the oldest first."""
    try:
        return sorted(name[: -len(".jsonl")] for name in os.listdir(home.runs) if name.endswith(".jsonl"))
    except OSError:
        return []


class EventFile:
    """The events of a run, appended line by line."""

    def __init__(self, path: str, run: str, target: str) -> None:
        self.path, self.run, self.target = path, run, target
        self._handle = shared.open_file(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        self._reserved = 0  # bytes behind the end that are kept for last words

    def append(self, event: Dict[str, Any], sync: bool = False, last: bool = False) -> None:
        """One event; `sync` makes it durable before anything else happens, `last` may take it from the reserve.

        Raises OSError, and leaves no part of a line then. A line that a killed writer has torn is ended first.
        """
        line = json.dumps(event, ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"
        fcntl.flock(self._handle, fcntl.LOCK_EX)  # a line that another one writes this moment is not torn
        try:
            self._write(line, last)
        finally:
            fcntl.flock(self._handle, fcntl.LOCK_UN)
        if sync:
            os.fsync(self._handle)

    def _write(self, line: bytes, last: bool) -> None:
        end = self.size()
        if end and os.pread(self._handle, 1, end - 1) != b"\n":
            line = b"\n" + line
        self._make_room(end, len(line), last)
        if os.write(self._handle, line) < len(line):  # the disk is full
            os.ftruncate(self._handle, end)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)

    def say(self, phase: str, what: str, sync: bool = False, last: bool = False, **fields: Any) -> Dict[str, Any]:
        """An event of now."""
        event = dict(v=VERSION, t=round(time.time(), 3), run=self.run, target=self.target, phase=phase, what=what, **fields)
        self.append(event, sync, last)
        return event

    def make_reserve(self) -> None:
        """Takes disk space now that the end of the run can be written down with, should the disk be full then. Raises OSError.

        The blocks lie behind the end of the file, and are renewed with each line. Where the file system knows no such thing they are a
        file's that is removed for the first of the last words.
        """
        self._reserved = RESERVED
        try:
            reserve.behind(self._handle, self.size(), RESERVED)
        except OSError as error:
            if error.errno in reserve.FULL:
                raise
            self._reserved = 0
            reserve.make(self.path + RESERVE, RESERVED)

    def _make_room(self, end: int, length: int, last: bool) -> None:
        """Room for a line, and the whole reserve behind it; for one of the last words the room alone is enough. Raises OSError."""
        if not self._reserved:
            if last:
                remove(self.path + RESERVE)
            return
        try:
            reserve.behind(self._handle, end, length + self._reserved)
        except OSError:
            if not last:
                raise
            reserve.behind(self._handle, end, length)

    def size(self) -> int:
        """Bytes so far: where one who follows begins."""
        return os.fstat(self._handle).st_size


def last_event(path: str) -> Optional[Dict[str, Any]]:
    """The last whole line of an event file; a torn one, and one that is no event, is passed over."""
    try:
        with open(path, "rb") as stream:
            lines = stream.read().split(b"\n")
    except OSError:
        return None
    return next((event for event in map(event_of, reversed(lines[:-1])) if event is not None), None)


def event_of(line: bytes) -> Optional[Dict[str, Any]]:
    """The event of a line; None for a line that is torn, or no event."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and "what" in event else None
