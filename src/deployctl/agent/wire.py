"""The talk with the controller: JSON lines both ways, and pieces of bytes from it. It knows no operation."""

from __future__ import annotations

import json
import os
import select
import time
from typing import Any, Dict, Iterator, Optional

Request = Dict[str, Any]
LEASE = 30.0  # seconds without a word from the controller
LARGEST = 1 << 20  # bytes of one piece, and of what is kept unheard while an operation is at work


class HungUp(Exception):
    """The controller closed its side, or was silent for longer than the lease."""


class Wire:
    """Two descriptors of ours: nothing that a program started by us prints can come between."""

    def __init__(self, source: int, sink: int) -> None:
        self.source, self.sink = source, sink
        self._buffer = b""
        self._heard = time.monotonic()

    def next(self, timeout: Optional[float] = None, also: Optional[int] = None) -> Optional[Request]:
        """The next request; None after `timeout` seconds, or when the descriptor `also` can be read.

        Raises HungUp at the end of the input, and when the lease is over.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            request = self._parsed()
            if request is not None:
                return request
            now = time.monotonic()
            wait = max(0.0, self._heard + LEASE - now)
            if until is not None:
                wait = min(wait, max(0.0, until - now))
            ready = select.select([self.source] if also is None else [self.source, also], [], [], wait)[0]
            if self.source in ready:
                self._read()
                continue
            self._judge()
            if also in ready or (until is not None and time.monotonic() >= until):
                return None

    def heed(self) -> None:
        """For an operation that lasts: takes in what the controller has said, to be heard later. Raises HungUp when it is gone."""
        while self._speaks():
            if len(self._buffer) >= LARGEST:
                return
            self._read()
        self._judge()

    def quiet(self) -> bool:
        """Whether nothing waits to be heard."""
        return b"\n" not in self._buffer and not self._speaks()

    def _speaks(self) -> bool:
        """Whether there is something to read now, the end included."""
        return bool(select.select([self.source], [], [], 0)[0])

    def _judge(self) -> None:
        """Raises HungUp when the lease is over; all that was said must have been read, since an operation may not have listened."""
        if time.monotonic() - self._heard >= LEASE:
            raise HungUp("the controller was silent for %d seconds" % LEASE)

    def _read(self) -> None:
        data = os.read(self.source, 1 << 16)
        if not data:
            raise HungUp("the controller closed its side")
        self._heard = time.monotonic()
        self._buffer += data

    def _parsed(self) -> Optional[Request]:
        while b"\n" in self._buffer:
            line, self._buffer = self._buffer.split(b"\n", 1)
            try:
                request = json.loads(line)
                operation = request["op"]
            except (ValueError, TypeError, KeyError) as error:
                raise HungUp("the controller does not speak our language") from error
            if operation != "alive":
                return dict(request)
        return None

    def pieces(self) -> Iterator[bytes]:
        """The bytes that follow a request: each piece comes after a line {"op": "bytes", "size"}; size 0 is their end. Raises HungUp."""
        while True:
            request = self.next()
            assert request is not None
            if request["op"] != "bytes" or not 0 <= request["size"] <= LARGEST:
                raise HungUp("the controller does not speak our language")
            if not request["size"]:
                return
            while len(self._buffer) < request["size"]:
                if select.select([self.source], [], [], max(0.0, self._heard + LEASE - time.monotonic()))[0]:
                    self._read()
                else:
                    self._judge()
            piece, self._buffer = self._buffer[: request["size"]], self._buffer[request["size"] :]
            yield piece

    def send(self, message: Dict[str, Any]) -> None:
        """One JSON line. Raises HungUp when nobody reads any more."""
        self._write(json.dumps(message, ensure_ascii=True, separators=(",", ":")))

    def send_marker(self, nonce: str, hello: Dict[str, Any]) -> None:
        """The first line: by it the controller knows that we run, whatever login files printed before."""
        self._write("deployctl-agent %s %s" % (nonce, json.dumps(hello)))

    def _write(self, line: str) -> None:
        data = line.encode("ascii") + b"\n"
        try:
            while data:
                data = data[os.write(self.sink, data) :]
        except OSError as error:
            raise HungUp("the controller reads no more: %s" % error.strerror) from error
