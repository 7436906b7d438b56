"""The Python frames of a process at one moment, from its memory and, where the target has it, from py-spy."""

from __future__ import annotations

import os
from typing import Any, Dict, Optional

from . import calls, evidence

WITHIN = 0.5  # seconds that the reading of the memory may take
Look = Dict[str, Any]


def look(taken: evidence.Sample) -> Optional[Look]:
    """{"frames", "goes_on", "tripped"} of a Python's main thread (frames.Stack); None for another program, and where a look could hang."""
    thread = evidence.main_thread(taken)
    if thread is None or thread["state"] not in ("R", "S") or evidence.interpreter(taken) != "python":
        return None
    if calls.channel(thread["wchan"]) in ("fuse", "nfs") or not os.access("/proc/%d/mem" % taken["seen"]["pid"], os.R_OK):
        return None
    from . import frames, pyspy

    found = frames.within(taken["seen"]["pid"], WITHIN)
    named = pyspy.stack(taken)
    if found is None:
        return {"frames": named, "goes_on": None, "tripped": None} if named else None
    return {"frames": named or found.frames, "goes_on": found.goes_on, "tripped": found.tripped}


def both(old: Optional[Look], new: Optional[Look]) -> Optional[Look]:
    """The newer look. A handler that is still to run in both has not run; in one of them it was about to."""
    if not old or not new:
        return new
    runs = bool(new["goes_on"] or old["goes_on"] or old["tripped"] is False)
    return dict(new, tripped=False if runs else new["tripped"])
