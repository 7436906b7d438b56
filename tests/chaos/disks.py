"""Disks that are full, once or for as long as a second writer takes each block that is given up."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

BLOCK = bytes(4096)
TURN = 0.002  # seconds between two tries


def fill(big: Path) -> int:
    """Fills the file system on which the file lies; bytes."""
    written = 0
    with big.open("ab", buffering=0) as stream, suppress(OSError):
        while True:
            written += stream.write(BLOCK)
    return written


def keep_full(big: Path) -> Callable[[], None]:
    """Fills it, and fills it again whenever there is room, until what is returned is called."""
    over = threading.Event()

    def write() -> None:
        while not over.wait(TURN):
            fill(big)

    fill(big)
    writer = threading.Thread(target=write, name=f"writer {big}", daemon=True)
    writer.start()

    def end() -> None:
        over.set()
        writer.join()

    return end


def free(big: Path) -> None:
    """Gives the room back."""
    os.truncate(big, 0)
