"""Who of a tree is meant by a signal: shells and launchers stand between the process that was found and the one that does the work.

A shell keeps a signal until its child has ended; uv and accelerate pass it on or leave their child behind; torchrun's agent passes it to
its ranks and ends them by KILL when its own clock has run out. Whoever gets a signal twice may cut a checkpoint: one of a line gets it.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from . import match, procfs
from .procfs import Seen
from .tree import ELASTIC

WORDS = ("main", "top", "ranks", "group", "hold-agent")
SINKS = ("tee", "logger", "ts")  # what stands at the end of a pipe and ends with it
CLOCK = 30.0  # seconds that torchrun's agent gives its ranks, unless it is told otherwise
CLOCK_NAME, CLOCK_OPTION = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "--shutdown-timeout"
RANKS = ("RANK", "LOCAL_RANK")  # what launchers put into the environment of those that they start


class Line(NamedTuple):
    """The line of descent from the process that was found to the one that works."""

    top: Seen
    main: Seen
    members: Sequence[Seen]


def line(top: Seen, members: Sequence[Seen]) -> Line:
    """Goes down from the top through shells, uv and accelerate, as long as each has one child."""
    main = top
    while role(main, members) in ("shell", "uv", "accelerate"):
        children = [seen for seen in _children(main, members) if seen["comm"] not in SINKS]
        if len(children) != 1:
            break
        main = children[0]
    return Line(top, main, members)


def role(seen: Seen, members: Sequence[Seen]) -> Optional[str]:
    """"shell", "uv", "accelerate", "agent" (of torchrun, wherever it runs) or None: what the process is beside its work."""
    if seen["comm"] == "pt_elastic" or _starts_ranks(seen, members):
        return "agent"
    if match.is_shell(seen["argv"], seen["comm"]):
        return "shell"
    names = [os.path.basename(word) for word in seen["argv"][:2]]
    for launcher in ("uv", "accelerate"):
        if seen["comm"] == launcher or (launcher in names and names.index(launcher) == (1 if match.interpreter(seen["argv"]) else 0)):
            return launcher
    return None


def _starts_ranks(seen: Seen, members: Sequence[Seen]) -> bool:
    """Whether its children carry an elastic run that itself does not: also an agent inside accelerate, which has no name of its own."""
    if not any(ELASTIC in _environment(child) for child in _children(seen, members)):
        return False
    return ELASTIC not in _environment(seen)


def ranks(line: Line) -> List[Seen]:
    """The processes that a launcher gave a rank: the agent's children; or the first rank with the others that it started itself."""
    children = [seen for seen in _children(line.main, line.members) if any(name in _environment(seen) for name in RANKS)]
    if role(line.main, line.members) == "agent":
        return children
    # workers of a DataLoader inherit the rank of their parent and are none
    own = _environment(line.main).get("LOCAL_RANK")
    return [line.main] + [seen for seen in children if _environment(seen).get("LOCAL_RANK") != own]


def meant(to: str, line: Line) -> List[Seen]:
    """The processes that a signal is for, by the playbook's word."""
    if to == "top":
        return [line.top]
    if to in ("ranks", "hold-agent"):
        return ranks(line)
    if to == "group":
        return [seen for seen in line.members if seen["pgrp"] == line.main["pgrp"]]
    return [line.main]


def objection(to: str, line: Line) -> Optional[str]:
    """Why a signal to the group would do harm; None when it would not."""
    if to == "hold-agent":
        return None if role(line.main, line.members) == "agent" else "there is no agent of torchrun to hold"
    if to != "group":
        return None
    pids = {seen["pid"] for seen in line.members}
    for glance in filter(None, map(procfs.glance, procfs.everyone())):
        if glance.pgrp == line.main["pgrp"] and glance.pid not in pids and glance.state not in procfs.DEAD:
            return "its process group holds a stranger: pid %d, %s" % (glance.pid, glance.comm)
    group = meant("group", line)
    harmed = next((seen for seen in group if seen["comm"] in SINKS or role(seen, line.members) in ("uv", "accelerate")), None)
    if harmed is not None:
        return "its process group holds pid %d, %s, which would pass the signal on or end too early" % (harmed["pid"], harmed["comm"])
    interpreters = [seen for seen in group if match.interpreter(seen["argv"]) == "python"]
    if len(interpreters) > 1:
        return "its process group holds %d Python processes, which would all get the signal" % len(interpreters)
    return None


def clock(line: Line) -> Optional[float]:
    """Seconds after which the launcher itself ends its ranks by KILL; None when it has no clock."""
    if role(line.main, line.members) != "agent":
        return None
    argv = line.main["argv"]
    given = [word.partition("=")[2] for word in argv if _is_clock(word.partition("=")[0]) and "=" in word]
    given += [argv[place + 1] for place, word in enumerate(argv[:-1]) if _is_clock(word)]
    for text in (*given, _environment(line.main).get(CLOCK_NAME, "")):
        try:
            return float(text)
        except ValueError:
            continue
    return CLOCK


def _is_clock(word: str) -> bool:
    return word.replace("_", "-") == CLOCK_OPTION


def as_dict(line: Line) -> Dict[str, Any]:
    """{"members": [{"pid", "ppid", "comm", "argv", "role"}], "main", "to" (pids by word), "objections" (by word), "clock"}: JSON values."""
    shown = [dict({name: seen[name] for name in ("pid", "ppid", "comm", "argv")}, role=role(seen, line.members)) for seen in line.members]
    return {
        "members": shown, "main": line.main["pid"], "clock": clock(line),
        "to": {word: [seen["pid"] for seen in meant(word, line)] for word in WORDS},
        "objections": {word: objection(word, line) for word in WORDS if objection(word, line)},
    }  # fmt: skip


def _children(seen: Seen, members: Sequence[Seen]) -> List[Seen]:
    return [other for other in members if other["ppid"] == seen["pid"]]


def _environment(seen: Seen) -> Dict[str, str]:
    return procfs.environment(seen["pid"]) or {}
