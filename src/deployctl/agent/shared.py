"""The state directory of several operators: what is made in a directory that a group shares is for that group, anything else is private.

A directory is shared when whoever made it gave it the setgid bit and its group the right to write (mode 2770). No directory gets that
by accident: a umask alone never sets it.
"""

from __future__ import annotations

import os
import stat

SHARED = stat.S_ISGID | stat.S_IWGRP


def is_shared(directory: str) -> bool:
    """Whether the members of its group work in it together."""
    try:
        return os.stat(directory).st_mode & SHARED == SHARED
    except OSError:
        return False


def make_directory(path: str) -> str:
    """Makes the directory and its parents: 2770 in a shared one, else 0700. Existing ones stay as they are. Raises OSError."""
    if not os.path.isdir(path):
        make_directory(os.path.dirname(path))  # makedirs would give its mode to the last one only
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            return path
        if is_shared(os.path.dirname(path)):
            os.chmod(path, 0o2770)
    return path


def open_file(path: str, flags: int, private: bool = False) -> int:
    """The descriptor of a file, made when it is missing: 0660 in a shared directory unless it is `private`, else 0600. Raises OSError."""
    try:
        return os.open(path, flags & ~os.O_CREAT | os.O_CLOEXEC)
    except FileNotFoundError:
        handle = os.open(path, flags | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if not private and is_shared(os.path.dirname(path)):
        try:
            os.fchmod(handle, 0o660)
        except OSError:
            pass  # another one made it at the same moment, who does the same
    return handle
