"""The name under which a process of ours is seen by ps: written over its own argv, which holds the boot line otherwise."""

from __future__ import annotations

import os

COMM = "deployctl"


def show_as(title: str) -> None:
    """Shows this process as `title`, as far as its argv has room; best effort, it never fails.

    Source: proc_pid_stat(5), fields 48 and 49 (arg_start, arg_end); proc_pid_mem(5).
    """
    try:
        with open("/proc/self/stat", "rb") as stat:
            fields = stat.read().rsplit(b")", 1)[1].split()
        start, end = int(fields[45]), int(fields[46])
        text = title.encode("ascii", "replace")[: end - start - 1]
        handle = os.open("/proc/self/mem", os.O_RDWR | os.O_CLOEXEC)
        try:
            os.pwrite(handle, text.ljust(end - start, b"\0"), start)
        finally:
            os.close(handle)
        with open("/proc/self/comm", "w") as comm:
            comm.write(COMM)
    except (OSError, ValueError, IndexError):
        pass
