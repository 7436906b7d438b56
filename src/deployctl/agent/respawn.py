"""Who would start the workload again after its end: a unit of systemd, a supervisor, or a shell that loops. It starts and ends nothing."""

from __future__ import annotations

import os
import re
import subprocess
from typing import Any, Dict, List, Optional

from . import match, procfs
from .procfs import Seen

SUPERVISORS = ("supervisord", "runsv", "s6-supervise", "circusd", "monit", "runit", "nodemon", "watchmedo", "forever")
LOOP = re.compile(r"(?:^|[\s;&|({])(?:while|until)\s")
ANSWER = 5.0  # seconds that systemctl may take
MOST = 1 << 16  # bytes of a script that are read


def supervisor(top: Seen) -> Optional[Dict[str, Any]]:
    """{"kind" ("unit", "supervisor" or "loop"), "name", "pid", "how"} of what would start it again; None when nothing is known to."""
    above = _above(top)
    unit = _unit(top, above)
    if unit is not None:
        return unit
    for seen in above:
        if seen["comm"] in SUPERVISORS:
            return {"kind": "supervisor", "name": seen["comm"], "pid": seen["pid"], "how": "it restarts what it started"}
        text = _text(seen)
        if text is not None and LOOP.search(text):
            return {"kind": "loop", "name": " ".join(seen["argv"])[:200], "pid": seen["pid"], "how": "its script has a loop"}
    return None


def _above(top: Seen) -> List[Seen]:
    """The parents that wait for it, the nearest first: shells without a terminal, and whatever stands right above them."""
    found: List[Seen] = []
    seen = procfs.look(top["ppid"])
    while seen is not None and seen["pid"] not in (1, os.getpid()):
        found.append(seen)
        if not match.is_shell(seen["argv"], seen["comm"]) or _interactive(seen):
            break
        seen = procfs.look(seen["ppid"])
    return found


def _interactive(seen: Seen) -> bool:
    """A shell without a script or `-c` is a person's: it starts nothing by itself."""
    return _text(seen) is None


def _text(seen: Seen) -> Optional[str]:
    """The program of a shell: that of `-c`, or the script's; None for another process, and where it cannot be read."""
    if not match.is_shell(seen["argv"], seen["comm"]):
        return None
    given = match.given(seen["argv"], seen["comm"])
    if given is None:
        code = next((place for place, word in enumerate(seen["argv"][1:], 1) if re.fullmatch(r"-[a-z]*c[a-z]*", word)), None)
        return seen["argv"][code + 1] if code is not None and code + 1 < len(seen["argv"]) else None
    try:
        path = os.path.join(os.readlink("/proc/%d/cwd" % seen["pid"]), given.name)
        handle = os.open("/proc/%d/root%s" % (seen["pid"], path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        return procfs.text(os.read(handle, MOST))
    finally:
        os.close(handle)


def _unit(top: Seen, above: List[Seen]) -> Optional[Dict[str, Any]]:
    """The service whose main process is the workload, or a wrapper of it, when systemd would start that anew."""
    name = unit_of(top["pid"])
    if name is None:
        return None
    shown = _show(name)
    restart, main = shown.get("Restart", "unknown"), shown.get("MainPID", "0")
    if restart in ("no", "") or (shown and int(main) not in [seen["pid"] for seen in (top, *above)]):
        return None
    return {"kind": "unit", "name": name, "pid": int(main), "how": "Restart=%s" % restart}


def unit_of(pid: int) -> Optional[str]:
    """The service of systemd whose cgroup the process is in; None for a session, a scope, or no systemd. Source: cgroups(7)."""
    try:
        lines = procfs.text(procfs.read("/proc/%d/cgroup" % pid)).splitlines()
    except OSError:
        return None
    paths = [line.split(":", 2)[2] for line in lines if line.startswith("0::") or ":name=systemd:" in line]
    names = [part for path in paths for part in path.split("/")]
    units = [name for name in names if name.endswith(".service") and not name.startswith("user@")]
    return units[-1] if units else None


def _show(unit: str) -> Dict[str, str]:
    """What systemd says of the unit; empty where it does not answer."""
    try:
        done = subprocess.run(
            ["systemctl", "show", "--property=Restart,MainPID", "--", unit], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, timeout=ANSWER, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return dict(line.split("=", 1) for line in procfs.text(done.stdout).splitlines() if "=" in line)
