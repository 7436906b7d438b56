"""What would make going live fail, seen before anything is stopped: directories that are files, mounts, immutable and read-only things.

Going live links the old file into the release, and renames the new one over it: each check is about one of these two.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import struct
from typing import Iterable, Optional, Set

from .faults import Refused
from .shared import is_shared

GET_FLAGS = 0x80086601 if struct.calcsize("l") == 8 else 0x80046601  # Source: linux/fs.h, FS_IOC_GETFLAGS
FLAGS = {0x10: "immutable (chattr +i)", 0x20: "append-only (chattr +a)"}


def mount_points() -> Set[str]:
    """Where something is mounted. Source: proc_pid_mountinfo(5), field 5, with octal escapes."""
    with open("/proc/self/mountinfo", "rb") as lines:
        raw = [line.split(b" ")[4] for line in lines]
    return {os.fsdecode(re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), path)) for path in raw}


def look_at_root(root: str) -> None:
    """Raises Refused for a destination in which nothing can be made."""
    if os.path.lexists(root) and not os.path.isdir(root):
        raise Refused("cannot stage there: it is no directory", where=root, todo="correct `to`")
    there = root
    while not os.path.lexists(there):
        there = os.path.dirname(there)
    if not os.path.isdir(there):
        raise Refused("cannot stage there: a file stands where a directory of it should be", where=there, todo="correct `to`")
    _must_be_writable(there)


def look_at_files(root: str, paths: Iterable[str], keeps_owner: bool = False, going: bool = False) -> None:
    """Raises Refused for the first path that cannot go live, or be taken away (`going`).

    keeps_owner: a new file gets the owner of the one that it replaces.
    """
    mounts = mount_points()
    known: Set[str] = set()
    for path in paths:
        directory = os.path.dirname(path)
        if directory not in known:
            known.add(directory)
            _look_at_directory(root, directory, mounts)
        seen = None if going and os.path.islink(os.path.join(root, path)) else _file(os.path.join(root, path))
        if seen is not None:
            _look_at_file(os.path.join(root, path), seen, mounts, keeps_owner)


def _look_at_directory(root: str, directory: str, mounts: Set[str]) -> None:
    there = os.path.join(root, directory) if directory else root
    while not os.path.lexists(there):
        there = os.path.dirname(there)
    if not os.path.isdir(there):
        raise Refused("a file stands where a directory of it should be", where=there, todo="remove it, or correct `to`")
    real, top = os.path.realpath(there), os.path.realpath(root)
    if len(there) <= len(root):
        return  # the destination itself, or it is still to be made
    if not (real + "/").startswith(top.rstrip("/") + "/"):
        raise Refused("it leads out of the destination by a symbolic link", where=there, todo="name the directory that it leads to as `to`")
    up = real
    while len(up) > len(top):
        if up in mounts or os.stat(up).st_dev != os.stat(top).st_dev:
            raise Refused("another file system is mounted there", where=up, todo="push into it by a step of its own")
        up = os.path.dirname(up)
    _must_be_writable(there)


def _must_be_writable(directory: str) -> None:
    if os.access(directory, os.W_OK | os.X_OK):
        return
    if os.statvfs(directory).f_flag & os.ST_RDONLY:
        raise Refused("its file system is read-only", where=directory, todo="mount it for writing, or correct `to`")
    what = fixed(directory)
    if what:
        raise Refused("the directory is %s" % what, where=directory, todo="take that away with chattr, or correct `to`")
    raise Refused("uid %d may not write there" % os.geteuid(), where=directory, todo="make it writable, or log in as another user")


def _file(path: str) -> Optional[os.stat_result]:
    """None where nothing is. Raises Refused for what a file cannot replace."""
    try:
        seen = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not (stat.S_ISREG(seen.st_mode)):
        kind = "a symbolic link" if stat.S_ISLNK(seen.st_mode) else "a directory" if stat.S_ISDIR(seen.st_mode) else "no regular file"
        raise Refused("it is %s" % kind, where=path, todo="exclude it, or remove it in the target")
    return seen


def _look_at_file(path: str, seen: os.stat_result, mounts: Set[str], keeps_owner: bool) -> None:
    if os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path)) in mounts:
        raise Refused("something is mounted on it, so it cannot be replaced", where=path, todo="exclude it, or unmount it")
    what = fixed(path)
    if what:
        raise Refused("it is %s" % what, where=path, todo="take that away with chattr, or exclude it")
    own = os.geteuid()
    if own in (0, seen.st_uid):
        return
    if keeps_owner and not (is_shared(os.path.dirname(path)) and seen.st_gid in (os.getegid(), *os.getgroups())):
        raise Refused("it belongs to uid %d, and uid %d cannot replace it as that" % (seen.st_uid, own), where=path, todo=_OTHER)
    above = os.stat(os.path.dirname(path))
    if above.st_mode & stat.S_ISVTX and own != above.st_uid:
        raise Refused("only its owner may replace it: its directory is sticky", where=path, todo=_OTHER)
    if not os.access(path, os.R_OK | os.W_OK) or seen.st_mode & (stat.S_ISUID | stat.S_ISGID):
        raise Refused("uid %d may make no hard link of it" % own, where=path, todo=_OTHER)  # Source: proc(5), protected_hardlinks


_OTHER = "log in as its owner or as root, or exclude it"


def fixed(path: str) -> str:
    """What keeps a file or directory from being replaced by anyone ("immutable …"); empty where nothing does or nobody can tell."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        flags = struct.unpack("l", fcntl.ioctl(handle, GET_FLAGS, struct.pack("l", 0)))[0]
    except OSError:
        return ""  # a file system without such flags
    finally:
        os.close(handle)
    return next((words for flag, words in FLAGS.items() if flags & flag), "")
