"""Whether a signal reaches a process and what it would do there: what the masks, the state and the user say before anything is sent."""

from __future__ import annotations

import os
from typing import Any, Dict, Optional, Tuple

from .procfs import DEAD, Seen

Deaf = Tuple[str, str]  # verdict and detail
UNSTOPPABLE = ("KILL", "STOP", "CONT")  # the kernel acts on them itself: no handler, no mask. Source: signal(7)
POLITE = ("INT", "TERM")


def deaf(seen: Seen, signal: str) -> Optional[Deaf]:
    """(verdict, detail) when the signal cannot reach or move the process, which is known before it is sent; None when it may."""
    return forbidden(seen) or held(seen, signal) or unheard(seen, signal)


def forbidden(seen: Seen) -> Optional[Deaf]:
    """Whether we may not signal it at all. Source: kill(2)."""
    try:
        os.kill(seen["pid"], 0)
    except PermissionError:
        return "no-permission", "eperm"
    except OSError:
        pass
    return None


def held(seen: Seen, signal: str) -> Optional[Deaf]:
    """Stopped processes keep every signal but KILL until they go on; CONT does not move one that a tracer holds."""
    if (seen["state"] == "t" or (seen["state"] == "T" and seen["traced"])) and signal != "KILL":
        return "traced", "tracing-stop"
    if seen["state"] == "T" and signal not in UNSTOPPABLE:
        return "suspended", "stop-signal"
    return None


def unheard(seen: Seen, signal: str) -> Optional[Deaf]:
    """Dropped at the sender (ignored, or pid 1 without a handler), or queued where nobody can take it.

    From inside its namespace even KILL is dropped for pid 1; from the parent namespace KILL and STOP work.
    Source: signal(7), pid_namespaces(7).
    """
    first = seen["pid1"] and signal not in seen["caught"]
    if signal in UNSTOPPABLE:
        return ("signal-ignored", "pid1") if first and seen["pid"] == 1 and signal != "CONT" else None
    if signal in seen["ignored"]:
        return "signal-ignored", _origin(seen, signal)
    if signal in seen["blocked"]:
        return None if _takes_by_descriptor(seen["pid"]) else ("signal-blocked", "every-thread")
    return ("signal-ignored", "pid1") if first else None


def better(seen: Seen) -> str:
    """The signal that is left: one that has a handler, else one whose default action ends the process."""
    heard = [name for name in POLITE if not unheard(seen, name)]
    handled = [name for name in heard if name in seen["caught"]]
    if handled or "TERM" in heard:
        return "signal:" + (handled or ["TERM"])[0]
    return "restart-container" if unheard(seen, "KILL") else "signal:KILL"


def effects(seen: Seen, frozen: Optional[str], exiting: bool) -> Dict[str, Dict[str, Any]]:
    """What each of INT, TERM and KILL would do now: {"heard", "does"}.

    does: "handler", "end" (the default action: at once, nothing of its own runs), "ignored", "blocked", "refused", "pid1", "dead", "dying",
    "queued" (until it is thawed or goes on).
    """
    return {name: _effect(seen, name, frozen, exiting) for name in (*POLITE, "KILL")}


def _effect(seen: Seen, name: str, frozen: Optional[str], exiting: bool) -> Dict[str, Any]:
    if seen["state"] in DEAD or exiting:
        return {"heard": False, "does": "dead" if seen["state"] in DEAD else "dying"}
    why = forbidden(seen) or unheard(seen, name)
    if why is not None:
        word = {"no-permission": "refused", "signal-blocked": "blocked"}.get(why[0], "pid1" if why[1] == "pid1" else "ignored")
        return {"heard": False, "does": word, "why": why[1]}
    caught = name in seen["caught"]
    if held(seen, name) or (frozen == "v1") or (frozen and caught):
        return {"heard": False, "does": "queued"}
    return {"heard": True, "does": "handler" if caught or name in seen["blocked"] else "end"}  # blocked, and yet heard: by a descriptor


def _origin(seen: Seen, signal: str) -> str:
    """'inherited': INT with QUIT is what a shell's `&` leaves, HUP what nohup leaves; else 'own'."""
    by_shell = signal in ("INT", "QUIT") and {"INT", "QUIT"} <= set(seen["ignored"])
    return "inherited" if by_shell or signal == "HUP" else "own"


def _takes_by_descriptor(pid: int) -> bool:
    """Whether it has a signalfd, or may have one: what cannot be read is not known to be absent. Source: signalfd(2).

    A thread in sigwait needs no look: while it waits the kernel takes the signal out of its mask.
    """
    base = "/proc/%d/fd/" % pid
    try:
        names = os.listdir(base)
    except OSError:
        return True
    return any(_target(base + name) == "anon_inode:[signalfd]" for name in names)


def _target(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
