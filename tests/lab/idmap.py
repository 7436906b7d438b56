"""Bind-mount a directory with shifted owners; runs alone: `python3 -I - SOURCE TARGET FIRST COUNT`, this file on its stdin.

An unprivileged container must see the files of root as its own root's, which lies at FIRST on the host. Debian 12's mount(8) cannot
ask for that yet, and chown of a whole /usr would copy it. Source: mount_setattr(2), MOUNT_ATTR_IDMAP; open_tree(2); move_mount(2).
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

SYS_OPEN_TREE, SYS_MOVE_MOUNT, SYS_MOUNT_SETATTR = 428, 429, 442  # the same numbers on every architecture
AT_FDCWD, AT_EMPTY_PATH = -100, 0x1000
OPEN_TREE_CLONE, OPEN_TREE_CLOEXEC, MOVE_MOUNT_F_EMPTY_PATH = 1, os.O_CLOEXEC, 4
MOUNT_ATTR_IDMAP = 0x00100000


class MountAttr(ctypes.Structure):
    """struct mount_attr of linux/mount.h."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("attr_set", "attr_clr", "propagation", "userns_fd")]


def syscall(number: int, *arguments: object) -> int:
    """The raw system call; raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    result = int(libc.syscall(ctypes.c_long(number), *arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), f"syscall {number}")
    return result


def user_namespace(first: int, count: int) -> int:
    """A file descriptor of a new user namespace in which id 0 is `first` on the host."""
    holder = subprocess.Popen(["unshare", "--user", "sh", "-c", "echo; read hold"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdin and holder.stdout
    holder.stdout.readline()  # the namespace exists once the shell in it speaks
    for kind in ("gid_map", "uid_map"):
        with open(f"/proc/{holder.pid}/{kind}", "w") as file:
            file.write(f"0 {first} {count}\n")
    descriptor = os.open(f"/proc/{holder.pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    holder.stdin.close()
    holder.wait()
    return descriptor


def bind(source: str, target: str, first: int, count: int) -> None:
    """Mount `source` on `target`, owners shifted up by `first`."""
    fd_type, path_type, int_type = ctypes.c_int, ctypes.c_char_p, ctypes.c_uint
    tree = syscall(SYS_OPEN_TREE, fd_type(AT_FDCWD), path_type(source.encode()), int_type(OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC))
    attributes = MountAttr(attr_set=MOUNT_ATTR_IDMAP, userns_fd=user_namespace(first, count))
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    syscall(SYS_MOUNT_SETATTR, fd_type(tree), path_type(b""), int_type(AT_EMPTY_PATH), ctypes.byref(attributes), size)
    end = path_type(target.encode())
    syscall(SYS_MOVE_MOUNT, fd_type(tree), path_type(b""), fd_type(AT_FDCWD), end, int_type(MOVE_MOUNT_F_EMPTY_PATH))


if __name__ == "__main__":
    bind(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
