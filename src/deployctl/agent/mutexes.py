"""Who holds the pthread mutex that a thread waits for: read from the mutex itself, in the memory of the process.

Reading /proc/PID/mem neither stops the process nor attaches to it. Source: proc_pid_mem(5), glibc's struct __pthread_mutex_s:
int lock, unsigned count, int owner.
"""

from __future__ import annotations

import struct
from typing import Any, Dict, List, Optional, Sequence

from . import calls, procfs


def circle(pid: int, threads: Sequence[Dict[str, Any]]) -> List[int]:
    """The threads, by id, each of which waits for a mutex of the next and the last for one of the first; empty without such a circle."""
    known = {thread["tid"] for thread in threads}
    waits: Dict[int, int] = {}
    for thread in threads:
        owner = _owner(pid, thread["call"]) if calls.is_mutex(thread["call"]) else None
        if owner in known and owner is not None:
            waits[thread["tid"]] = owner
    for first in waits:
        path = [first]
        while path[-1] in waits and waits[path[-1]] not in path:
            path.append(waits[path[-1]])
        if path[-1] in waits:
            return path[path.index(waits[path[-1]]) :]
    return []


def _owner(pid: int, call: Optional[calls.Call]) -> Optional[int]:
    if call is None:
        return None
    raw = procfs.memory(pid, call["args"][0], 12)
    return struct.unpack("=iIi", raw)[2] if len(raw) == 12 else None
