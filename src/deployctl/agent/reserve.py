"""Disk space that is taken before it is needed: whoever else writes to a disk takes each block that becomes free on it.

A file keeps blocks behind its end, or a file is made that is written over later. Both are promises of a file system that writes in
place; one that copies each block that it writes (ZFS) gives none, and there it only helps to remove such a file.
"""

from __future__ import annotations

import errno
import os

from . import shared

FULL = (errno.ENOSPC, errno.EDQUOT)
KEEP_SIZE = 1  # Source: fallocate(2), FALLOC_FL_KEEP_SIZE
PIECE = 1 << 16  # bytes


def behind(handle: int, end: int, size: int) -> None:
    """Gives a file blocks for `size` bytes from its end on; it becomes no longer. Those that it has already stay as they are.

    Raises OSError: one of FULL when there is no room, any other where it cannot be done. ZFS only looks whether there is room now.
    Source: fallocate(2); zpl_fallocate_common of OpenZFS
    """
    try:
        import ctypes  # a small Python has none

        libc = ctypes.CDLL(None, use_errno=True)
        allocate = getattr(libc, "fallocate64", None) or libc.fallocate
    except (ImportError, AttributeError) as error:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP)) from error
    allocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    while allocate(handle, KEEP_SIZE, end, size):
        number = ctypes.get_errno()
        if number != errno.EINTR:
            raise OSError(number, os.strerror(number))
    if os.fstat(handle).st_blocks * 512 < size:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))


def give_up_behind(path: str) -> None:
    """Gives back the blocks behind the end of a file that nobody writes to any more."""
    try:
        os.truncate(path, os.stat(path).st_size)
    except OSError:
        pass


def make(path: str, size: int) -> None:
    """Makes a file of that many bytes, which nothing compresses, to be written over. Raises OSError, and leaves none then."""
    handle = shared.open_file(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        left = size
        while left > 0:
            left -= os.write(handle, os.urandom(min(left, PIECE)))
        os.fsync(handle)
    except OSError:
        os.unlink(path)
        raise
    finally:
        os.close(handle)
