"""`pct start`, `stop`, `shutdown`, `reboot` (contract 3 and 7)."""

import os
import subprocess
import sys
import time
from pathlib import Path

from . import config, machine
from .machine import LAB, Settings
from .words import Parsed
from .worker import Failed, lock, work

ASKED_BY_HA = "DEPLOYCTL_LAB_HA"
HA_DELAY = 0.5  # seconds until the lab's ha-manager does what it was asked for


def act(name: str, vmid: int, parsed: Parsed, settings: Settings) -> int:
    """One of the commands; returns its exit status."""
    if settings.ha and name != "reboot" and ASKED_BY_HA not in os.environ:
        return ask_ha(name, vmid)
    lock(vmid, settings.lock_wait)
    return work(lambda: TASKS[name](vmid, parsed, settings), failure=255)


def ask_ha(name: str, vmid: int) -> int:
    """Only asks, and ends before anything has happened (contract 1, point 12)."""
    print(f"Requesting HA {'start' if name == 'start' else 'stop'} for CT {vmid}", flush=True)
    if os.fork() == 0:
        os.setsid()
        none = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(none, descriptor)
        time.sleep(HA_DELAY)
        os.execve("/usr/sbin/pct", ["pct", name, str(vmid)], {**os.environ, ASKED_BY_HA: "1"})
    return 0


def start(vmid: int, _parsed: Parsed, settings: Settings) -> None:
    """Returns when its PID 1 was started."""
    if machine.running(vmid):
        raise Failed(f"CT {vmid} already running")
    if not settings.quorum:
        raise Failed("cluster not ready - no quorum?")
    config.check_lock(config.read(vmid))
    log = LAB / f"lxc/{vmid}/log"
    words = ["lxc-start", "-n", str(vmid), "-d", "-o", str(log), "-l", "ERROR"]
    if subprocess.run(words, stdin=subprocess.DEVNULL, preexec_fn=leave_cgroups).returncode:
        raise Failed(f"startup for container '{vmid}' failed")


def leave_cgroups() -> None:
    """LXC hangs a container's cgroups below those of who starts it; on a real node that is a unit of systemd, here the root."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        if after.split()[0] in ("cgroup", "cgroup2"):
            try:
                Path(before.split()[4], "cgroup.procs").write_text(str(os.getpid()))
            except OSError:
                continue


def stop(vmid: int, _parsed: Parsed, _settings: Settings) -> None:
    """SIGKILL to everything at once."""
    must_run(vmid, f"CT {vmid} not running")
    lxc_stop(vmid, "-k")


def shutdown(vmid: int, parsed: Parsed, _settings: Settings) -> None:
    """Asks PID 1 to end, and waits `--timeout` seconds; kills with --forceStop."""
    must_run(vmid, f"CT {vmid} not running")
    timeout = parsed.options.get("timeout", "60")
    lxc_stop(vmid, *(() if parsed.options.get("forceStop") == "1" else ("--nokill",)), "--timeout", timeout)


def reboot(vmid: int, parsed: Parsed, settings: Settings) -> None:
    """Shuts down, kills after the timeout, starts; a lock in the configuration does not hinder it."""
    if not machine.running(vmid):
        raise Failed(f"VM {vmid} not running")
    lxc_stop(vmid, "--timeout", parsed.options.get("timeout", "60"))
    unlocked = config.read(vmid)
    held = unlocked.keys.pop("lock", None)
    if held is None:
        start(vmid, parsed, settings)
        return
    config.write(vmid, unlocked, settings)
    try:
        start(vmid, parsed, settings)
    finally:
        unlocked.keys["lock"] = held
        config.write(vmid, unlocked, settings)


def must_run(vmid: int, otherwise: str) -> None:
    """Existence is not looked at first (contract 3)."""
    if not machine.running(vmid):
        raise Failed(otherwise)
    config.check_lock(config.read(vmid))


def lxc_stop(vmid: int, *options: str) -> None:
    """Run lxc-stop; its failure is told in two places (contract 7)."""
    words = ["lxc-stop", "-n", str(vmid), *options]
    if done := subprocess.run(words, stdin=subprocess.DEVNULL).returncode:
        sys.stdout.write(f"command '{' '.join(words)}' failed: exit code {done}\n")
        raise Failed("container did not stop")


TASKS = {"start": start, "stop": stop, "shutdown": shutdown, "reboot": reboot}
