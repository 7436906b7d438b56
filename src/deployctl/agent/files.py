"""The files, pipes and sockets of a process: what it writes, who reads it, what it holds, and what is left when it is gone."""

from __future__ import annotations

import os
import re
import stat
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from . import procfs

Facts = Dict[str, Any]
File = Dict[str, Any]
MOST = 512  # descriptors of a process that are looked at
MOST_TEXT = 1 << 16  # bytes of what was printed since an earlier look
SMALL = 128  # bytes: a file that holds a pid is not longer
LISTEN = "0A"  # Source: the kernel's tcp_states.h
HALF = re.compile(r"\.(tmp|part|partial|incomplete|writing)(\.\w+)?$|^(tmp|\.tmp)[-_.]|~$")
LOCKS = re.compile(r"\.(lock|lck|pid)$|^\.?lock$|^\.?lockfile$", re.IGNORECASE)


def link(path: str, unread: List[str], name: str) -> Optional[str]:
    """Where a link of /proc leads; None, with its name among the unreadable ones, when that may not be known."""
    try:
        return procfs.text(os.fsencode(os.readlink(path)))
    except OSError as error:
        if not isinstance(error, (FileNotFoundError, ProcessLookupError)):
            unread.append(name)
        return None


def look(pid: int, unread: List[str]) -> Facts:
    """{"fds" (number: target), "files" (regular ones, open for writing), "ports" (that it listens on), "gpu" (holds one)}."""
    base, found = "/proc/%d/fd/" % pid, {}
    try:
        for number in sorted(os.listdir(base), key=int)[:MOST]:
            target = link(base + number, [], "fd")
            if target is not None:
                found[number] = target
    except OSError as error:
        if not isinstance(error, (FileNotFoundError, ProcessLookupError)):
            unread.append("fd")
    written = (_file(pid, number, target) for number, target in found.items() if target.startswith("/"))
    sockets = {target[8:-1] for target in found.values() if target.startswith("socket:[")}
    return {
        "fds": found, "files": [file for file in written if file is not None],
        "ports": [port for port in listening(pid) if port["inode"] in sockets] if sockets else [],
        "gpu": any(target.startswith("/dev/nvidia") for target in found.values()),
    }  # fmt: skip


def _file(pid: int, number: str, path: str) -> Optional[File]:
    """{"fd", "path", "size", "position", "dev", "ino"} of a regular file that is open for writing. Source: proc_pid_fdinfo(5)."""
    try:
        info = os.stat("/proc/%d/fd/%s" % (pid, number))
        if not stat.S_ISREG(info.st_mode):
            return None
        lines = dict(
            line.split(":", 1) for line in procfs.text(procfs.read("/proc/%d/fdinfo/%s" % (pid, number))).splitlines() if ":" in line
        )
    except OSError:
        return None
    if int(lines["flags"], 8) & os.O_ACCMODE == os.O_RDONLY:
        return None
    return {"fd": int(number), "path": path, "size": info.st_size, "position": int(lines["pos"]), "dev": info.st_dev, "ino": info.st_ino}


def listening(pid: int) -> List[Facts]:
    """{"port", "inode"} of every TCP socket that listens in the network namespace of the process. Source: proc_net_tcp(5)."""
    found = []
    for name in ("tcp", "tcp6"):
        try:
            lines = procfs.text(procfs.read("/proc/%d/net/%s" % (pid, name))).splitlines()[1:]
        except OSError:
            continue
        fields = (line.split() for line in lines)
        found += [{"port": int(word[1].rpartition(":")[2], 16), "inode": word[9]} for word in fields if word[3] == LISTEN]
    return found


def holders(target: str, without: Sequence[int] = ()) -> Iterator[Tuple[int, str, int]]:
    """(pid, descriptor, flags) of every process that has that pipe or socket open, as far as we may see."""
    for pid in procfs.everyone():
        if pid in without:
            continue
        try:
            for number in os.listdir("/proc/%d/fd" % pid):
                if os.readlink("/proc/%d/fd/%s" % (pid, number)) == target:
                    yield pid, number, _flags(pid, number)
        except OSError:
            continue


def _flags(pid: int, number: str) -> int:
    for line in procfs.text(procfs.read("/proc/%d/fdinfo/%s" % (pid, number))).splitlines():
        if line.startswith("flags:"):
            return int(line.split()[1], 8)
    return 0


def readers(pipe: str, pid: int) -> List[int]:
    """The other processes that have the reading end of a pipe (or the other end of a terminal's or socket's name)."""
    return sorted({other for other, _, flags in holders(pipe, (pid,)) if flags & os.O_ACCMODE != os.O_WRONLY})


def printed(earlier: Optional[Facts], now: Optional[Facts]) -> str:
    """What came to stdout and stderr between two samples, where these are files; the process of `now` may be gone."""
    parts, seen = [], set()
    for file in (earlier or {}).get("files", []):
        if file["fd"] in (1, 2) and (file["dev"], file["ino"]) not in seen:
            seen.add((file["dev"], file["ino"]))
            alive = (now or {}).get("seen")
            path = "/proc/%d/fd/%d" % (alive["pid"], file["fd"]) if alive else file["path"]
            parts.append(_from(path, file))
    return "".join(parts)


def last_words(now: Facts) -> str:
    """An uncaught interrupt at the end of what a living process has printed, where that is a file: what was before is not known."""
    pid = now["seen"]["pid"]
    for file in now["files"]:
        if file["fd"] in (1, 2):
            text = _from("/proc/%d/fd/%d" % (pid, file["fd"]), dict(file, size=max(0, file["size"] - SMALL)))
            last = text.split()[-1:]
            if last == ["KeyboardInterrupt"]:
                return last[0]
    return ""


def _from(path: str, file: File) -> str:
    try:
        with open(path, "rb") as stream:
            info = os.fstat(stream.fileno())
            if (info.st_dev, info.st_ino) != (file["dev"], file["ino"]) or info.st_size < file["size"]:
                return ""
            stream.seek(max(file["size"], info.st_size - MOST_TEXT))
            return stream.read(MOST_TEXT).decode("utf-8", "replace")
    except OSError:
        return ""


def naming(pid: int, directories: Sequence[str]) -> List[File]:
    """{"path", "dev", "ino", "written" (epoch)} of the lock and pid files in these directories that hold that pid."""
    found = []
    for path in _named(directories, LOCKS):
        try:
            info = os.lstat(path)
            if stat.S_ISREG(info.st_mode) and info.st_size <= SMALL and procfs.read(path).split()[:1] == [b"%d" % pid]:
                found.append({"path": path, "dev": info.st_dev, "ino": info.st_ino, "written": info.st_mtime})
        except OSError:
            continue
    return found


def halves(directories: Sequence[str], since: float) -> List[str]:
    """Files with a name of what is still being written, changed after that moment (epoch seconds)."""
    found = []
    for path in _named(directories, HALF):
        try:
            info = os.lstat(path)
        except OSError:
            continue
        if stat.S_ISREG(info.st_mode) and info.st_mtime >= since:
            found.append(path)
    return sorted(found)


def _named(directories: Sequence[str], pattern: "re.Pattern[str]") -> Iterator[str]:
    for directory in dict.fromkeys(directories):
        try:
            names = os.listdir(directory)
        except OSError:
            continue
        yield from ("%s/%s" % (directory.rstrip("/"), name) for name in names[:5000] if pattern.search(name))


def still(file: File) -> bool:
    """Whether that very file is still there under its name."""
    try:
        info = os.lstat(file["path"])
    except OSError:
        return False
    return (info.st_dev, info.st_ino) == (file["dev"], file["ino"])


def mount_of(pid: int, path: str) -> Optional[Facts]:
    """{"point", "kind", "source", "connection"} of the mount that a path of the process lies on. Source: proc_pid_mountinfo(5)."""
    best: Optional[Facts] = None
    try:
        lines = procfs.text(procfs.read("/proc/%d/mountinfo" % pid)).splitlines()
    except OSError:
        return None
    for line in lines:
        left, _, right = line.partition(" - ")
        fields, kind = left.split(), right.split()
        point = fields[4].replace("\\040", " ")
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and (best is None or len(point) >= len(best["point"])):
            best = {"point": point, "kind": kind[0], "source": kind[1], "connection": fields[2].partition(":")[2]}
    return best
