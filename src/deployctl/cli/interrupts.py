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
    """The status is decided. Python takes its handlers away before it ends; what is ignored stays so."""
    _pass_over()
    for number in (*HEEDED, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)


def _pass_over() -> None:
    """By a handler that does nothing: SIG_IGN would come down to what we start, and Python complains when one is on its way."""
    for number in HEEDED:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


def _interrupt(number: int, frame: object) -> None:
    _pass_over()
    raise Interrupted


def _unraisable(lost: sys.UnraisableHookArgs) -> None:
    """In a finalizer or a weak reference's callback an exception comes to nobody."""
    if lost.exc_type is Interrupted:
        signal.setitimer(signal.ITIMER_REAL, AGAIN)
    else:
        sys.__unraisablehook__(lost)
