"""A place of its own in the cgroup tree: job and workload must not end with the login session or the unit that started them."""

from __future__ import annotations

import os
import re
import subprocess
import time
from typing import List, Optional

from .faults import Refused
from .procfs import read, text

BUSCTL = ("/usr/bin/busctl", "/bin/busctl")
SYSTEMD = "/run/systemd/system"  # is there when systemd is the init. Source: sd_booted(3)
WITHIN = 20  # seconds
_BORROWED = re.compile(r"/(session-[^/]*\.scope|[^/]+\.service|user@[^/]*)(/|$)")


def borrowed(cgroups: str) -> Optional[str]:
    """The session or unit of systemd in whose cgroup we are; None where nothing ends us with it.

    cgroups: the text of /proc/PID/cgroup. A container's own root, and a scope that was made for us, are no such place.
    Source: cgroups(7), systemd.kill(5), logind.conf(5) KillUserProcesses=.
    """
    for line in cgroups.splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0" or controllers == "name=systemd":
            found = _BORROWED.search(path)
            if found:
                return found.group(1)
    return None


def look() -> Optional[str]:
    """The session or unit that would take this process along, where systemd runs at all. Raises Refused where we could not leave it."""
    found = borrowed(text(read("/proc/self/cgroup"))) if os.path.isdir(SYSTEMD) else None
    if found is None or (os.geteuid() == 0 and _busctl()):
        return found
    what = "no busctl is here" if os.geteuid() == 0 else "only root may leave it"
    raise Refused(
        "what is launched would end with %s, and %s" % (found, what), where="systemd",
        todo="log in as root, or start deployctl outside of that unit (loginctl enable-linger does not help)",
    )  # fmt: skip


def leave(name: str) -> None:
    """Moves this process into a scope of its own, `NAME.scope`; what it starts follows. Raises Refused.

    Source: org.freedesktop.systemd1(5), StartTransientUnit.
    """
    busctl = _busctl()
    assert busctl is not None
    unit = re.sub(r"[^A-Za-z0-9:_.-]", "-", name) + ".scope"
    call: List[str] = [busctl, "call", "org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"]
    call += ["StartTransientUnit", "ssa(sv)a(sa(sv))", unit, "fail", "1", "PIDs", "au", "1", str(os.getpid()), "0"]
    try:
        done = subprocess.run(call, stdin=subprocess.DEVNULL, capture_output=True, timeout=WITHIN, check=False)
        said = done.stderr.decode("utf-8", "replace").strip() if done.returncode else ""
        until = time.monotonic() + WITHIN
        while not said and look() is not None:  # systemd moves us when it comes to it
            said = "it did not move us within %d s" % WITHIN if time.monotonic() > until else ""
            time.sleep(0.005)
    except (OSError, subprocess.TimeoutExpired) as error:
        said = str(error)
    if said:
        raise Refused("systemd gave no scope: %s" % said, where="systemd", todo="see `systemctl status` in the target")


def _busctl() -> Optional[str]:
    return next((path for path in BUSCTL if os.access(path, os.X_OK)), None)
