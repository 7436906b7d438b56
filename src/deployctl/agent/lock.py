"""The lock of a workload: flock on one file in the target, so that every controller sees it and the kernel frees it with its holder."""

from __future__ import annotations

import fcntl
import json
import os
import time
from typing import Any, Dict, Optional

from .faults import Busy
from .shared import open_file
from .state import read_json

LOOKING = 10.0  # seconds that a look may take at the most


def take(path: str, holder: Dict[str, Any]) -> int:
    """The descriptor that holds the lock. Raises Busy with what the holder said of itself.

    holder: {"run", "user", "host", "pid"} of the controller. The descriptor is not inherited over exec; a fork shares it, and the lock
    is free when the last copy is closed: nobody unlocks it by a call, since that would free it for all of them.
    """
    handle = open_file(path, os.O_RDWR | os.O_CREAT)
    try:
        _lock(handle)
        if not os.path.lexists(path) or os.fstat(handle).st_ino != os.stat(path).st_ino:
            raise BlockingIOError("the file was removed when the workload was forgotten; another one may be the lock now")
    except OSError as error:
        os.close(handle)
        other = holder_of(path) or {}
        raise Busy("another run holds the workload", where=path, todo="wait for it, then run again", holder=other) from error
    text = json.dumps(dict(holder, since=round(time.time(), 3))).encode()
    os.pwrite(handle, text, 0)  # over the old one, which has room also on a full disk
    os.ftruncate(handle, len(text))
    return handle


def _lock(handle: int) -> None:
    """Raises OSError when a run holds it. Who only looks (`held`) shares it for a moment, which a busy machine can make long."""
    until = time.monotonic() + LOOKING
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() > until:
                raise
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)  # a run shares it with nobody
        fcntl.flock(handle, fcntl.LOCK_UN)
        time.sleep(0.001)


def holder_of(path: str) -> Optional[Dict[str, Any]]:
    """What the last holder wrote; whether it still holds the lock, `held` says."""
    return read_json(path)


def held(path: str) -> bool:
    """Whether somebody holds the lock now."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False
