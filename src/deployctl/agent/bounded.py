"""A program's output within a deadline. It does not wait for the end of the output, nor for a program that the kernel does not let go."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from typing import Optional, Sequence

MOST = 1 << 20  # bytes
DYING = 1.0  # seconds in which a large process comes to its end after KILL


def output(argv: Sequence[str], within: float) -> Optional[bytes]:
    """What it wrote to stdout before it ended or `within` seconds were over; None when it could not be started or ended badly."""
    try:
        child = subprocess.Popen(
            list(argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
    except OSError:
        return None
    assert child.stdout is not None
    with child.stdout as pipe:
        raw = _read(pipe.fileno(), child, time.monotonic() + within)
    try:
        child.wait(0.1)
    except subprocess.TimeoutExpired:
        end(child)
    return raw if child.returncode == 0 else None


def _read(handle: int, child: "subprocess.Popen[bytes]", until: float) -> bytes:
    raw = b""
    while time.monotonic() < until and len(raw) < MOST:
        readable, _, _ = select.select([handle], [], [], min(0.05, max(0.0, until - time.monotonic())))
        if readable:
            piece = os.read(handle, 1 << 16)
            if not piece:
                break
            raw += piece
        elif child.poll() is not None:
            break
    return raw


def end(child: "subprocess.Popen[bytes]", patience: float = 0.2) -> None:
    """KILL for its whole session, which is its own; one that waits in the kernel for longer than `patience` (seconds) is left to itself."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait(patience)
    except (OSError, subprocess.TimeoutExpired):
        if child.returncode is None:
            child.returncode = -signal.SIGKILL  # nobody waits for it any more
