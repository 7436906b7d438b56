"""A value that is found after the stop: the newest file that fits a pattern, that nobody has open, and that a check finds complete.

It is looked for when everything that wrote is gone, so the last checkpoint of the process that was stopped is among the candidates.
"""

from __future__ import annotations

import glob
import os
import subprocess
import time
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

from . import procfs, program
from .faults import Fault, Refused

CHECKED = 300.0  # seconds that a check of one file may take
TRIED = 20  # files that are checked, the newest first


class Passed(NamedTuple):
    """A file that was not taken, and why."""

    path: str
    why: str


def filled(job: Any, operation: Dict[str, Any], start: Any) -> Any:
    """The start (launch.Start) with the files in the place of their marks; emits `chosen` for each. Raises Fault for one without any.

    operation: newest [{"mark", "flag", "pattern", "complete" (argv or []), "default" (text or null)}], a pattern being relative to the
    directory of the start, and so is the file then.
    """
    for wanted in operation.get("newest", []):
        path, passed = find(job, wanted, start)
        told = [one._asdict() for one in passed]
        job.emit("chosen", flag=wanted["flag"], path=path or wanted["default"], found=path is not None, passed=told)
        if path is None and wanted["default"] is None:
            last = "; %s %s" % (passed[0].path, passed[0].why) if passed else ""
            raise Fault(
                "no file is whole%s" % last if passed else "there is no such file", where="--%s: %s" % (wanted["flag"], wanted["pattern"]),
                todo="give the flag a file, or a default in the playbook",
            )  # fmt: skip
        start = _with(start, wanted["mark"], path or wanted["default"])
    return start


def _with(start: Any, mark: str, text: str) -> Any:
    argv = [word.replace(mark, text) for word in start.argv]
    return start._replace(argv=argv, environment={name: value.replace(mark, text) for name, value in start.environment.items()})


def find(job: Any, wanted: Dict[str, Any], start: Any) -> Tuple[Optional[str], List[Passed]]:
    """(the newest file that will do, or None; those that were passed over)."""
    passed: List[Passed] = []
    opened = _open_files()
    for path, info in _candidates(wanted["pattern"], start.directory)[:TRIED]:
        if (info.st_dev, info.st_ino) in opened:
            why: Optional[str] = "is open in a process"
        else:
            why = _incomplete(job, wanted["complete"], path, start) if wanted["complete"] else None
        if why is None:
            return path, passed
        passed.append(Passed(path, why))
    return None, passed


def _candidates(pattern: str, directory: str) -> List[Tuple[str, os.stat_result]]:
    """Regular files, and directories, as a checkpoint may be one; the newest first, of equal ones the last by name."""
    found = []
    for path in glob.glob(os.path.join(glob.escape(directory), pattern), recursive=True):
        try:
            info = os.stat(path)
        except OSError:
            continue  # removed since
        name = path if os.path.isabs(pattern) else os.path.relpath(path, directory)
        found.append((info.st_mtime_ns, name, info))
    return [(name, info) for _, name, info in sorted(found, key=lambda one: one[:2], reverse=True)]


def _open_files() -> Set[Tuple[int, int]]:
    """(device, inode) of what any process has open, as far as we may see."""
    found = set()
    for pid in procfs.everyone():
        try:
            names = os.listdir("/proc/%d/fd" % pid)
        except OSError:
            continue
        for name in names:
            try:
                info = os.stat("/proc/%d/fd/%s" % (pid, name))
            except OSError:
                continue
            found.add((info.st_dev, info.st_ino))
    return found


def _incomplete(job: Any, check: List[str], path: str, start: Any) -> Optional[str]:
    """Why the check does not find the file complete; None when it does. It runs as the workload would, with the file as its last word."""
    try:
        file = program.find(check, start.environment, start.directory).path
        child = subprocess.Popen(
            [*check, path], executable=file, cwd=start.directory, env=start.environment, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            # the job has one thread, and `user=` came with Python 3.9
            preexec_fn=lambda: _become(start),  # noqa: PLW1509
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError, Refused) as error:
        return "could not be checked: %s" % getattr(error, "what", error)
    until = time.monotonic() + CHECKED
    try:
        while child.poll() is None:
            if time.monotonic() > until:
                return "was not checked within %d s" % CHECKED
            job.heed()
            time.sleep(0.02)
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()
    return "is not complete (%s: %d)" % (check[0], child.returncode) if child.returncode else None


def _become(start: Any) -> None:
    if start.user is not None:
        groups = start.groups if start.groups is not None else os.getgrouplist(start.user.name, start.user.gid)
        os.setgroups(groups)
        os.setgid(start.user.gid)
        os.setuid(start.user.uid)
