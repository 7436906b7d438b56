"""A signal to the very process that was meant, and the wait for its end: by pidfd where kernel and Python have it."""

from __future__ import annotations

import os
import select
import signal
import time
from typing import Optional

from . import procfs
from .procfs import Seen

POLL = 0.01  # seconds between two glances where there is no pidfd


def _pidfd(pid: int) -> Optional[int]:
    """A descriptor that means this process and no later one; None when kernel or Python has none. Raises ProcessLookupError."""
    if not hasattr(os, "pidfd_open"):  # Python 3.8
        return None
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        raise
    except OSError:  # a kernel before 5.3, or a filter that does not know the call
        return None


def send(seen: Seen, name: str) -> bool:
    """Sends the signal to that very process; False when it is gone, even if its pid lives on as another. Raises PermissionError."""
    number, handle = getattr(signal, "SIG" + name), None
    try:
        handle = _pidfd(seen["pid"])
        if not procfs.same(seen):
            return False
        if handle is not None:
            signal.pidfd_send_signal(handle, number)
        else:
            os.kill(seen["pid"], number)
    except ProcessLookupError:
        return False
    finally:
        if handle is not None:
            os.close(handle)
    return True


def wait_for_end(seen: Seen, seconds: float) -> None:
    """Waits until that process has ended, not longer than that."""
    until = time.monotonic() + seconds
    try:
        handle = _pidfd(seen["pid"])
    except ProcessLookupError:
        return
    if handle is None:
        seen = dict(seen, boot=None)  # a glance every 10 ms must be cheap
        while procfs.same(seen) and time.monotonic() < until:
            time.sleep(POLL)
        return
    try:
        if procfs.same(seen):
            poll = select.poll()
            poll.register(handle, select.POLLIN)
            poll.poll(max(0.0, seconds) * 1000)
    finally:
        os.close(handle)
