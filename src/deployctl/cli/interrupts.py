"""Ctrl-C, SIGTERM, SIGHUP: the first one interrupts, what comes after it changes nothing."""

from __future__ import annotations

import signal
import sys

from deployctl.errors import Interrupted

HEEDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
AGAIN = 0.05  # seconds until an interrupt that fell where nothing can be raised is raised once more


def heed() -> None:
    """Makes the first of them an Interrupted; one that was ignored when we began (nohup) stays so.

    A logout brings TERM and HUP together, an impatient person two Ctrl-C: a second interrupt would end what the first one began, the
    word about where the run stands. That takes seconds at the most.
    """
    for number in HEEDED:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)
    signal.signal(signal.SIGALRM, _interrupt)
    sys.unraisablehook = _unraisable


def ignore() -> None:
    """What is left to do is short and must not be cut."""
    for number in (*HEEDED, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)


def _interrupt(number: int, frame: object) -> None:
    for each in HEEDED:
        signal.signal(each, signal.SIG_IGN)
    raise Interrupted


def _unraisable(lost: sys.UnraisableHookArgs) -> None:
    """In a finalizer or a weak reference's callback an exception comes to nobody."""
    if lost.exc_type is Interrupted:
        signal.setitimer(signal.ITIMER_REAL, AGAIN)
    else:
        sys.__unraisablehook__(lost)
