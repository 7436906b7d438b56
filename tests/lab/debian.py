"""The root directory with systemd, made once by debootstrap and kept for every lab of this machine."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.lab.errors import LabError

CACHE = Path("/var/cache/deployctl-lab")
ROOT = CACHE / "systemd"
SUITE, PACKAGES = "bookworm", "systemd,systemd-sysv,dbus,python3"


def make() -> Path:
    """The root directory; made now if it is not there, which takes a network and half a minute."""
    if ROOT.exists():
        return ROOT
    CACHE.mkdir(parents=True, exist_ok=True)
    lock = os.open(CACHE, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two labs may come up at once
        if not ROOT.exists():
            print("lab: debootstrap of the systemd container's root; once on this machine, about a minute", file=sys.stderr)
            build(CACHE / "partial")
    finally:
        os.close(lock)
    return ROOT


def build(partial: Path) -> None:
    """Run debootstrap, take out what would differ between containers, and give the tree its name."""
    shutil.rmtree(partial, ignore_errors=True)  # of an interrupted one
    # In namespaces of its own: what it mounts and starts in there ends with it, also when it is interrupted.
    alone = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc"]
    words = [*alone, "debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, str(partial)]
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except KeyboardInterrupt:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    if done.returncode:
        end = "\n".join(done.stdout.decode(errors="replace").splitlines()[-5:])
        shutil.rmtree(partial, ignore_errors=True)
        raise LabError(f"debootstrap: status {done.returncode}: {end}", "see whether apt works, or use `lab up --no-systemd`")
    shutil.rmtree(partial / "var/cache/apt", ignore_errors=True)
    shutil.rmtree(partial / "var/lib/apt/lists", ignore_errors=True)
    for name in ("etc/hostname", "etc/resolv.conf", "etc/machine-id"):  # debootstrap copies them from this machine
        (partial / name).unlink(missing_ok=True)
    (partial / "etc/machine-id").touch()
    partial.rename(ROOT)


def purge() -> None:
    """Remove the kept root directory."""
    if CACHE.exists():
        shutil.rmtree(CACHE)
