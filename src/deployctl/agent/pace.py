"""What the processes of a tree do while they are waited for: CPU, bytes written, the files that they write and how these grow."""

from __future__ import annotations

import fnmatch
import os
import time
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from . import files, procfs
from .procfs import Seen

LEAST = 0.01  # seconds between two looks, for a rate
SHOWN = 3  # growing files that are named


class Since(NamedTuple):
    """What was done since the look before: share of one core, bytes written a second (None: nobody's can be read), files that grew."""

    cpu: float
    written: Optional[int]
    growing: List[Dict[str, Any]]  # {"path", "size" (bytes), "rate" (bytes a second)}, the fastest first


class Pace:
    """Two looks at a tree, and what lies between them."""

    def __init__(self, members: Sequence[Seen]) -> None:
        self.at, self.used, self.sizes = time.monotonic(), _usages(members), _sizes(members)

    def since(self, members: Sequence[Seen]) -> Since:
        """What was done since the last call, or since the beginning."""
        at, used, sizes = time.monotonic(), _usages(members), _sizes(members)
        pairs = [(self.used[key], used[key]) for key in used if key in self.used]
        seconds = max(at - self.at, LEAST)
        grown = sorted(((size - self.sizes.get(path, 0), path) for path, size in sizes.items()), reverse=True)
        growing = [{"path": path, "size": sizes[path], "rate": round(more / seconds)} for more, path in grown[:SHOWN] if more > 0]
        self.at, self.used, self.sizes = at, used, sizes
        ticks = [new["cpu_ticks"] - old["cpu_ticks"] for old, new in pairs]
        known = [(old["written_bytes"], new["written_bytes"]) for old, new in pairs]
        written = [new - old for old, new in known if old is not None and new is not None]
        return Since(
            round(sum(ticks) / procfs.TICKS / seconds, 2), round(sum(written) / seconds) if written else None, growing,
        )  # fmt: skip


def half_written(members: Sequence[Seen], patterns: Sequence[str]) -> List[str]:
    """The files that match one of the patterns and are open for writing in the tree: they would be cut by an end now."""
    return sorted(path for path in _sizes(members) if any(fnmatch.fnmatch(os.path.basename(path), pattern) for pattern in patterns))


def _usages(members: Sequence[Seen]) -> Dict[Tuple[int, int], Dict[str, Any]]:
    usages = (((seen["pid"], seen["started"]), procfs.usage(seen["pid"], threads=False)) for seen in members)
    return {key: usage for key, usage in usages if usage is not None}


def _sizes(members: Sequence[Seen]) -> Dict[str, int]:
    """Path and size of each regular file that is open for writing in the tree."""
    return {file["path"]: file["size"] for seen in members for file in files.look(seen["pid"], [])["files"]}
