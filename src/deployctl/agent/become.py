"""From a copy of ours to somebody else's program: what a child must be rid of before its exec."""

from __future__ import annotations

import os
import signal
from typing import List, Optional

from .environment import User


def plain_signals() -> None:
    """Every signal at its default, none blocked."""
    for number in range(1, signal.NSIG):
        if number not in (signal.SIGKILL, signal.SIGSTOP, 32, 33):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def identity(user: Optional[User], groups: Optional[List[int]]) -> None:
    """Becomes the user, in those groups or in the user's own; None: stays who we are. Raises OSError."""
    if user is not None:
        os.setgroups(groups if groups is not None else os.getgrouplist(user.name, user.gid))
        os.setgid(user.gid)
        os.setuid(user.uid)
