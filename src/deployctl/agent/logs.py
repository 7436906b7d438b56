"""The log of a launched program, as it grows: its lines since an offset, its last lines."""

from __future__ import annotations

import os
import re
from typing import List

LINE = 4096  # bytes of a line that are looked at
TAIL = 20  # last lines of the log that are shown after a failure
PIECE = 1 << 20  # bytes of one read
_END = re.compile(b"[\r\n]")  # a progress bar ends its lines with a carriage return


class LogReader:
    """The lines of a log since an offset; a line is taken when it is whole."""

    def __init__(self, path: str, offset: int) -> None:
        self.path, self.offset = path, offset
        self.behind = False  # there is more to be read than the last call took
        self._partial = b""

    def lines(self) -> List[str]:
        """The whole lines that came since the last call; a log that was truncated is read from its start."""
        try:
            with open(self.path, "rb") as log:
                size = os.fstat(log.fileno()).st_size
                self.offset = min(self.offset, size)
                log.seek(self.offset)
                data = log.read(PIECE)
        except OSError:
            return []
        self.offset += len(data)
        self.behind = self.offset < size
        lines = _END.split(self._partial + data)
        self._partial = lines.pop()[:LINE]
        return [line[:LINE].decode("utf-8", "replace") for line in lines]


def last_lines(path: str, offset: int, size: int) -> List[str]:
    """The lines of the log since the offset that stand in its last `size` bytes; the first one may be torn."""
    try:
        with open(path, "rb") as log:
            end = os.fstat(log.fileno()).st_size
            log.seek(max(min(offset, end), end - size))
            return [line[:LINE].decode("utf-8", "replace") for line in _END.split(log.read(size))]
    except OSError:
        return []


def tail(path: str, offset: int) -> List[str]:
    """The last lines of the log since the offset."""
    return [line for line in last_lines(path, offset, 1 << 16) if line][-TAIL:]
