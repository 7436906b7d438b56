"""What a transport is, and one whole exec over any of them. Knows no ssh, no container, no agent."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from deployctl.errors import DeployError, TransportError
from deployctl.values import show_duration

if TYPE_CHECKING:
    from deployctl.transports.container import Container

PATH = "/sbin:/bin:/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin"  # where a target's programs are looked for, python3 first of all
TAIL = 64 * 1024  # bytes of stderr that are kept
CHUNK = 32 * 1024  # bytes of one read or write
_MISSING = re.compile(r"env: (?:can't execute )?['‘]?([^'’:\s]+)['’]?: (No such file|Permission denied|not found)")


class HungUp(OSError):
    """The far side hung up while bytes were sent; what it said before (stdout, stderr, status) is the reason."""


class Channel(Protocol):
    """One running program at the far side. `receive`, `status` and `close` belong to one thread; `send` may be in another."""

    def send(self, data: bytes) -> None:
        """Sends all of data. Raises HungUp."""

    def send_eof(self) -> None:
        """Ends the program's stdin; a far side that is gone is no error here."""

    def receive(self, timeout: float | None) -> bytes:
        """Some bytes of stdout, empty at its end. Raises TimeoutError after `timeout` seconds, TransportError when the link broke."""

    def errors(self) -> str:
        """The last 64 KiB of stderr so far."""

    def status(self, timeout: float) -> int:
        """The exit status, 128 + n for signal n. Raises TimeoutError after `timeout` seconds, TransportError when the link broke."""

    def close(self) -> None:
        """Ends a local child, closes a remote channel (the remote program is told by the end of its stdin only). May be repeated."""


class Transport(Protocol):
    """A way to a place where programs run; `name` is the place, for messages."""

    @property
    def name(self) -> str:
        """The target's or host's name."""

    @property
    def container(self) -> Container | None:
        """The container that it leads into, as a thing of its host; None where it leads into none."""

    def open(self, argv: Sequence[str]) -> Channel:
        """Starts a program. Raises TransportError."""

    def put(self, source: Path, destination: str, progress: Callable[[int], None] | None = None) -> None:
        """Copies a file to a new private one (0600). `progress` hears the bytes so far. Raises TransportError, and leaves no part then."""

    def explain(self, status: int, stderr: str, noise: str = "") -> DeployError:
        """The reason why an agent did not answer, from the carrier's own words; noise is what came on stdout."""

    def close(self) -> None:
        """Gives back what the transport itself holds. May be repeated."""


@dataclass(frozen=True)
class Done:
    """A program that came to its end: stdout is whole, stderr its last 64 KiB."""

    status: int
    stdout: bytes
    stderr: str


class Tail:
    """The last `TAIL` bytes of a stream that one thread writes and another reads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept = bytearray()

    def add(self, data: bytes) -> None:
        """Takes bytes in and forgets the oldest."""
        with self._lock:
            self._kept += data
            del self._kept[:-TAIL]

    def text(self) -> str:
        """What is kept, undecodable bytes replaced."""
        with self._lock:
            return self._kept.decode("utf-8", "replace")


def exec(transport: Transport, argv: Sequence[str], stdin: bytes = b"", timeout: float = 60) -> Done:
    """Runs a program to its end; `timeout` is in seconds for all of it. Raises TransportError.

    When the far side hangs up while bytes are sent, the rest is dropped: its own words and status are the answer.
    After a timeout a remote program may still run.
    """
    deadline = time.monotonic() + timeout
    channel = transport.open(argv)
    feeder = threading.Thread(target=_feed, args=(channel, stdin), daemon=True, name="deployctl-stdin")
    feeder.start()
    try:
        parts = list(iter(lambda: channel.receive(_left(deadline)), b""))
        status = channel.status(_left(deadline))
        return Done(status, b"".join(parts), channel.errors())
    except TimeoutError as error:
        said = last_line(channel.errors())
        what = f"no end within {show_duration(timeout)}" + (f"; its last words were '{said}'" if said else "")
        raise TransportError(what, where=transport.name, todo="look whether it still runs there, then try again") from error
    finally:
        channel.close()
        feeder.join(1)


def no_agent(place: str, where: str, status: int, stderr: str, noise: str) -> TransportError:
    """The error for a target whose python3 did not come up; `place` is how a person calls it ("container 200", "pve1")."""
    missing = _MISSING.search(stderr)
    if missing and missing[2] == "Permission denied":
        return TransportError(f"'{missing[1]}' may not be executed in {place}", where=where, todo=_python_key("mend its mode"))
    if missing:
        looked = "" if "/" in missing[1] else f" (looked in {PATH})"
        return TransportError(f"no {missing[1]} in {place}{looked}", where=where, todo=_python_key("install python3"))
    said = last_line(stderr) or last_line(noise)
    words = f"it said '{said}'" if said else "it said nothing"
    return TransportError(f"the agent did not start in {place}: exit status {status}, {words}", where=where)


def last_line(text: str) -> str:
    """The last line that holds something, cut to a length that fits into a message."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


def _python_key(first: str) -> str:
    return f"{first}, or name another one with the target's `python:` key"


def _left(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())


def _feed(channel: Channel, data: bytes) -> None:
    try:
        channel.send(data)
        channel.send_eof()
    except HungUp:
        pass
