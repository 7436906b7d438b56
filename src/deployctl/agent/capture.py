"""The process as it runs, read so that it can be started again as it ran. What is read is secret: it holds the environment."""

from __future__ import annotations

import os
import stat
from typing import Any, Dict, List, Optional, Tuple

from . import procfs
from .faults import Refused

LIMITS = {
    "cpu time": "CPU", "file size": "FSIZE", "data size": "DATA", "stack size": "STACK", "core file size": "CORE", "resident set": "RSS",
    "processes": "NPROC", "open files": "NOFILE", "locked memory": "MEMLOCK", "address space": "AS", "pending signals": "SIGPENDING",
    "msgqueue size": "MSGQUEUE", "nice priority": "NICE", "realtime priority": "RTPRIO", "realtime timeout": "RTTIME",
}  # fmt: skip


def capture(pid: int) -> Dict[str, Any]:
    """The process as it runs, so that it can be started again as it ran. It holds the environment: it is secret.

    argv, environment, directory, exe, uid, gid, groups, umask, nice, limits {RLIMIT_NAME: [soft, hard], -1 for none}, oom_score_adj,
    stdout and stderr (paths of regular files, else None), appends {"stdout", "stderr": opened with O_APPEND}, pid, started.
    Raises Refused when it cannot be trusted: gone, unreadable, written over, or changed between two readings.
    """
    try:
        first, second = _capture(pid), _capture(pid)
    except PermissionError as error:
        raise _untrusted(pid, "'%s' may not be read" % error.filename, "run deployctl as its user or as root") from error
    except (OSError, ValueError) as error:
        raise _untrusted(pid, "it ended while it was being read", "look again") from error
    if first != second:
        raise _untrusted(pid, "it changed while it was being read", "look again when it has settled")
    return first


def _untrusted(pid: int, why: str, todo: str) -> Refused:
    return Refused("process %d could not be started again as it runs: %s" % (pid, why), where="pid %d" % pid, todo=todo)


def _capture(pid: int) -> Dict[str, Any]:
    base = "/proc/%d/" % pid
    _, fields = procfs.stat_of(base + "stat")
    status = procfs.status_of(base + "status")
    raw, surroundings = procfs.read(base + "cmdline"), procfs.read(base + "environ")
    directory, exe = os.readlink(base + "cwd"), os.readlink(base + "exe")
    if not raw or not raw.endswith(b"\0") or raw.endswith(b"\0\0\0") or (surroundings and not surroundings.strip(b"\0")):
        raise _untrusted(pid, "it has written over its command line", "stop it by hand, or let its parent be the workload")
    if directory.endswith(" (deleted)") and not os.path.isdir(directory):
        raise _untrusted(pid, "its directory '%s' is gone" % directory[: -len(" (deleted)")], "restart it in one that lasts")
    if len(set(status["Uid"].split())) > 1:
        raise _untrusted(pid, "it runs with the rights of several users", "stop it by hand")
    outputs = {name: _output(pid, number) for name, number in (("stdout", 1), ("stderr", 2))}
    return {
        "pid": pid, "started": int(fields[19]), "argv": procfs.words(raw), "environment": procfs.environment(pid),
        "directory": directory, "exe": exe, "uid": int(status["Uid"].split()[0]), "gid": int(status["Gid"].split()[0]),
        "groups": [int(group) for group in status["Groups"].split()], "umask": int(status.get("Umask", "022"), 8),
        "nice": int(fields[16]), "limits": _limits(procfs.text(procfs.read(base + "limits"))),
        "oom_score_adj": int(procfs.read(base + "oom_score_adj")),
        "stdout": outputs["stdout"][0], "stderr": outputs["stderr"][0], "appends": {name: value[1] for name, value in outputs.items()},
    }  # fmt: skip


def _limits(table: str) -> Dict[str, List[int]]:
    """Source: proc_pid_limits(5): "Max " and a name in 26 columns, then soft, hard, unit."""
    rows = ((LIMITS.get(line[4:26].strip()), line[26:].split()) for line in table.splitlines()[1:])
    return {"RLIMIT_" + name: [-1 if value == "unlimited" else int(value) for value in values[:2]] for name, values in rows if name}


def _output(pid: int, number: int) -> Tuple[Optional[str], bool]:
    """(path of the regular file behind a descriptor, or None; whether it was opened to append). A closed one counts as none."""
    try:
        path = "/proc/%d/fd/%d" % (pid, number)
        target = os.readlink(path)
        if not stat.S_ISREG(os.stat(path).st_mode) or not os.path.exists(target):
            return None, False
        info = dict(line.split(b":", 1) for line in procfs.read("/proc/%d/fdinfo/%d" % (pid, number)).splitlines() if b":" in line)
        return target, bool(int(info[b"flags"], 8) & os.O_APPEND)
    except FileNotFoundError:
        return None, False
