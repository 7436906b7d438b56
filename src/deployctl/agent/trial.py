"""Runs a program for a check: as the workload's user, in its environment, without a GPU, to a deadline; nothing of it is left."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import bounded, environment, program
from .faults import Refused

TAIL = 4096  # bytes of its words that are kept
GLANCE = 0.1  # seconds between two looks whether somebody waits for it
WITHOUT_GPU = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "", "ROCR_VISIBLE_DEVICES": ""}
Heed = Callable[[], None]


def run(workload: Dict[str, Any], argv: List[str], trees: List[str], until: float, heed: Heed) -> Tuple[Optional[int], str]:
    """(its exit status, minus n for signal n, None when the deadline came; its last words). until: by time.monotonic().

    What `heed` raises ends it, and what it started, as the deadline does.
    """
    user = environment.user_of(workload["user"])
    added = dict(workload["environment"])
    paths = [*trees[1:], *filter(None, added.get("PYTHONPATH", "").split(":"))]
    around = {**WITHOUT_GPU, "PYTHONDONTWRITEBYTECODE": "1", **({"PYTHONPATH": ":".join(paths)} if paths else {})}
    clean = {**environment.clean(user, added), **around}
    found = program.find(argv, clean, trees[0])
    child = subprocess.Popen(
        argv, executable=found.path, cwd=trees[0], env=clean, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True, preexec_fn=lambda: _become(user if workload["user"] else None),  # noqa: PLW1509 - the agent has one thread
    )  # fmt: skip
    assert child.stdout is not None
    try:
        words = _listen(child.stdout.fileno(), until, heed)
        status = _status(child, until, heed)
    finally:
        bounded.end(child, bounded.DYING)  # also what it left in the background
        child.stdout.close()
    return status, words.decode("utf-8", "replace").strip()


def _become(user: Optional[environment.User]) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if user is not None and user.uid != os.geteuid():
        os.setgroups(os.getgrouplist(user.name, user.gid))
        os.setgid(user.gid)
        os.setuid(user.uid)


def _listen(handle: int, until: float, heed: Heed) -> bytes:
    """The last words until the end of the output, or the deadline."""
    words = b""
    while time.monotonic() < until:
        heed()
        if select.select([handle], [], [], min(GLANCE, max(0.0, until - time.monotonic())))[0]:
            piece = os.read(handle, 1 << 16)
            if not piece:
                break
            words = (words + piece)[-TAIL:]
    return words


def _status(child: "subprocess.Popen[bytes]", until: float, heed: Heed) -> Optional[int]:
    """How it ended; None when the deadline came before."""
    while child.poll() is None and time.monotonic() < until:
        heed()
        time.sleep(0.01)
    return child.returncode


def check(workload: Dict[str, Any], name: str, argv: List[str], trees: List[str], until: float, heed: Heed) -> Optional[Dict[str, Any]]:
    """The fault of a check {"path", "line", "what", "text"}; None when it ended with 0."""
    try:
        status, words = run(workload, argv, trees, until, heed)
    except (Refused, OSError, subprocess.SubprocessError) as error:
        what = getattr(error, "what", None) or getattr(error, "strerror", None) or str(error)
        return {"path": name, "line": None, "what": what, "text": None}
    if status == 0:
        return None
    ended = "no end within its time" if status is None else "signal %d" % -status if status < 0 else "status %d" % status
    last = words.splitlines()[-1] if words else ""
    return {"path": name, "line": None, "what": ended + (": " + last if last else ""), "text": None}
