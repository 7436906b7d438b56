"""This machine as a target: a child process, no shell. Knows no network."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from deployctl.errors import TransportError
from deployctl.transports.base import CHUNK, HungUp, Tail, no_agent

GRACE = 2.0  # seconds for a child to end by itself once its stdin ended, and again after SIGTERM


class LocalChannel:
    """A child in a session of its own, so that a Ctrl-C at our terminal does not reach it."""

    def __init__(self, argv: Sequence[str]) -> None:
        self._child = subprocess.Popen(
            list(argv), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0, start_new_session=True
        )
        self._stdin, self._stdout, self._stderr = _pipe(self._child.stdin), _pipe(self._child.stdout), _pipe(self._child.stderr)
        os.set_blocking(self._stdin.fileno(), False)
        self._sending = threading.Lock()
        self._tail = Tail()
        self._drain = threading.Thread(target=self._read_errors, daemon=True, name="deployctl-stderr")
        self._drain.start()

    def send(self, data: bytes) -> None:
        """Sends all of data. Raises HungUp."""
        view = memoryview(data)
        while view:
            with self._sending:
                if self._stdin.closed:
                    raise HungUp("the child's stdin is closed")
                writable = select.poll()
                writable.register(self._stdin, select.POLLOUT)
                if not writable.poll(200):  # short, so that close() gets its turn
                    continue
                try:
                    view = view[os.write(self._stdin.fileno(), view) :]
                except BlockingIOError:
                    continue
                except BrokenPipeError as error:
                    raise HungUp("the child closed its stdin") from error

    def send_eof(self) -> None:
        """Ends the child's stdin."""
        with self._sending:
            self._stdin.close()

    def receive(self, timeout: float | None) -> bytes:
        """Some bytes of stdout, empty at its end. Raises TimeoutError."""
        readable = select.poll()
        readable.register(self._stdout, select.POLLIN)
        if not readable.poll(None if timeout is None else timeout * 1000):
            raise TimeoutError(f"nothing on stdout for {timeout} s")
        return os.read(self._stdout.fileno(), CHUNK)

    def errors(self) -> str:
        """The last 64 KiB of stderr so far."""
        return self._tail.text()

    def status(self, timeout: float) -> int:
        """The exit status, 128 + n for signal n. Raises TimeoutError."""
        try:
            status = self._child.wait(timeout)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(f"still running after {timeout} s") from error
        self._hear_out()
        return 128 - status if status < 0 else status

    def close(self) -> None:
        """Ends the child: by the end of its stdin, else SIGTERM, else SIGKILL. What it started in other sessions lives on."""
        self.send_eof()
        self._stdout.close()
        for number in (signal.SIGTERM, signal.SIGKILL, None):
            try:
                self._child.wait(GRACE)
                break
            except subprocess.TimeoutExpired:
                if number:
                    self._child.send_signal(number)
        self._drain.join(0.1)

    def _hear_out(self) -> None:
        """Waits until all that the child has said is read; a grandchild may hold stderr open for as long as it lives."""
        try:
            unread = select.poll()
            unread.register(self._stderr, select.POLLIN)
            while self._drain.is_alive() and unread.poll(0):
                self._drain.join(0.01)
        except ValueError:
            pass  # it was closed: nothing more comes
        self._drain.join(0.5)

    def _read_errors(self) -> None:
        with self._stderr:
            while data := os.read(self._stderr.fileno(), CHUNK):
                self._tail.add(data)


class Local:
    """The transport to this machine."""

    container: None = None

    def __init__(self, name: str = "here") -> None:
        self.name = name

    def open(self, argv: Sequence[str]) -> LocalChannel:
        """Starts a child. Raises TransportError when there is no such program."""
        try:
            return LocalChannel(argv)
        except OSError as error:
            raise TransportError(f"cannot start '{argv[0]}': {error.strerror}", where=self.name) from error

    def put(self, source: Path, destination: str, progress: Callable[[int], None] | None = None) -> None:
        """Copies a file to a new private one (0600), and syncs it. Raises TransportError, and leaves no part then."""
        try:
            handle = os.open(destination, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise TransportError(f"cannot make '{destination}': {error.strerror}", where=self.name) from error
        try:
            with os.fdopen(handle, "wb") as new, source.open("rb") as old:
                while data := old.read(1024 * 1024):
                    new.write(data)
                    if progress:
                        progress(old.tell())
                new.flush()
                os.fsync(new.fileno())
        except BaseException as error:
            Path(destination).unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise TransportError(f"cannot copy '{source}' to '{destination}': {error.strerror}", where=self.name) from error
            raise

    def explain(self, status: int, stderr: str, noise: str = "") -> TransportError:
        """The reason why an agent did not answer."""
        return no_agent("this machine", self.name, status, stderr, noise)

    def close(self) -> None:
        """Holds nothing."""


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream
