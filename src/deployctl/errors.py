"""Every error of deployctl: where, what happened, what to do, and the exit status that it means.

A subclass says which exit status an error has, never which words. Sentences for a person are put together in report/.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class Interrupted(BaseException):
    """A person or a service manager wants us to end (cli/interrupts.py). It is no KeyboardInterrupt, of which typer makes a status without
    a word, and which Python ends a process by when it has passed through an exec of text, caught or not.
    """


class DeployError(Exception):
    """An error that a person can act on: `what` happened, `where`, and what to do (`todo`).

    All three are text without a full stop, lower case, bad values quoted. None of them may hold a secret.
    """

    exit_status = 1

    def __init__(self, what: str, *, where: str = "", todo: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.todo = todo

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" if self.where else self.what


class RefusedError(DeployError):
    """A step said no before anything live was touched, or the job went back to what was there before."""

    exit_status = 1


class AgentError(DeployError):
    """An operation inside the target failed."""

    exit_status = 1


class WordsError(DeployError):
    """The words on the command line, a playbook or the hosts file are wrong; nothing was contacted."""

    exit_status = 2


class TransportError(DeployError):
    """A target cannot be reached or used: network, key, container not running, no python3; nothing was changed."""

    exit_status = 3


class GoneError(TransportError):
    """The container went away under a session: it was stopped, restarted or moved."""


class UnfinishedError(DeployError):
    """The run has no end, nobody is at work to bring it to one, and something of the workload runs."""

    exit_status = 4


class DownError(DeployError):
    """Nothing of the workload runs, and nobody is at work to start it."""

    exit_status = 5


class BusyError(DeployError):
    """Another run holds the workload's lock, or the container is locked."""

    exit_status = 6


class DetachedError(DeployError):
    """Nobody follows the job any more; it goes on in the target."""

    exit_status = 7


class InterruptedRunError(DeployError):
    """A person or a signal ended the run before the cut-over; nothing was changed."""

    exit_status = 130


def suggestion(word: str, known: Iterable[str], otherwise: str = "leave it out: none is known") -> str:
    """`did you mean 'X'?` for the nearest of the known words, else the whole list; what to do `otherwise`, where nothing is known."""
    words = sorted(set(known))
    near = difflib.get_close_matches(word.lower(), [w.lower() for w in words], n=1, cutoff=0.6)
    for candidate in words:
        if near and candidate.lower() == near[0]:
            return f"did you mean '{candidate}'?"
    return f"known: {', '.join(words)}" if words else otherwise
