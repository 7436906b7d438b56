"""A target's session with the agent: `ask` it one thing, `put` a file, `follow` a job. It knows no step and no sentence of a report."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any

from deployctl import boot
from deployctl.errors import AgentError, BusyError, DeployError, DetachedError, DownError, GoneError, RefusedError, TransportError
from deployctl.events import Event
from deployctl.transports.base import Channel, HungUp, Transport
from deployctl.transports.container import Container
from deployctl.transports.proxmox import Facts

ALIVE = 5.0  # seconds between two signs of life; the agent's lease is 30
ANSWER = 900.0  # seconds that one answer may take: hashing a large tree is the longest
MARKER = 60.0  # seconds until the agent must have answered: a frozen container never does
FAREWELL = 5.0  # seconds for the agent's end
SILENCE = 30.0  # seconds without a word while a job is followed; the session speaks every 5


class SilentError(TransportError):
    """The target said nothing for too long, on a line that is open."""


class Session:
    """One open talk with the agent. A context manager: leaving it ends the session, and with it what was staged."""

    def __init__(
        self, name: str, transport: Transport, python: str | None = None, state: str | None = None, seen: Facts | None = None,
        patience: float = MARKER,
    ) -> None:  # fmt: skip
        """seen: what the host said of the container before it was entered; patience: seconds until the agent must have answered."""
        self.transport = transport
        self.seen = seen
        self.name = name
        self.state = state
        self._ids = 0
        self._buffer = b""
        self._sending = threading.Lock()
        self._over = threading.Event()
        nonce = secrets.token_hex(8)
        self._channel: Channel = transport.open(boot.argv(python, nonce))
        try:
            self._send_raw(boot.agent_zip())
            self.hello: dict[str, Any] = self._marker(f"deployctl-agent {nonce} ".encode(), patience)
        except BaseException:
            self._channel.close()
            raise
        self._pinger = threading.Thread(target=self._ping, name=f"alive {self.name}", daemon=True)
        self._pinger.start()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the session; what was staged and not handed to a job is taken back by the agent."""
        self._over.set()
        self._pinger.join(ALIVE)
        self._channel.close()

    @property
    def container(self) -> Container | None:
        """The container that the session is in, as a thing of its host."""
        return self.transport.container

    @property
    def locked(self) -> BusyError | None:
        """What is to be said of a container that was locked when it was entered."""
        return self.container.busy(self.seen) if self.container and self.seen and self.seen.lock else None

    # --- asking

    def ask(self, op: str, within: float = ANSWER, **fields: Any) -> dict[str, Any]:
        """The agent's answer, within so many seconds of silence. Raises RefusedError, BusyError or AgentError for its "no",
        TransportError when it is gone.
        """
        return self._answer_to(self._request(op, fields), within)

    def follow(self, op: str, **fields: Any) -> Generator[Event, None, dict[str, Any]]:
        """The events of a job until its end; the generator's value is the answer. A frozen container is waited for, as its job waits.

        Raises DetachedError when the link breaks, DownError when the container went away with the job in it.
        """
        number = self._request(op, fields)
        begun = "may have begun"
        while True:
            try:
                message = self._message(SILENCE)
            except GoneError as error:
                raise self._down(error, begun) from error
            except TransportError as error:
                if isinstance(error, SilentError) and self.container and self.container.frozen():
                    continue
                todo = f"follow it again with `deployctl attach --on {self.name}`"
                raise DetachedError(f"the link broke, the job {begun}: {error.what}", where=self.name, todo=todo) from error
            if "event" in message:
                begun = "goes on"
                yield message["event"]
            elif message.get("id") == number:
                return self._answer(message)

    def feed(self, op: str, pieces: Iterable[bytes], **fields: Any) -> dict[str, Any]:
        """The answer to an operation that takes bytes: `pieces`, each of at most 1 MiB, go down the same line. Raises DeployError.

        Memory stays flat: a piece is made when the one before it was taken. When the agent says no, the rest is not made.
        """
        number = self._request(op, fields)
        try:
            for piece in pieces:
                if not piece:
                    continue
                if self._spoke() or not self._send_piece(piece):
                    break
        finally:
            self._send_piece(b"")
        return self._answer_to(number)

    def put(self, source: Path, destination: str, progress: Callable[[int], None] | None = None) -> None:
        """A new private file in the target. Raises DeployError."""
        self.transport.put(source, destination, progress)

    def bid_farewell(self, events: list[Event]) -> None:
        """Ends the session in order, with the last events for the target's own file, and waits for the agent's end: then staging and
        lock are gone. Best effort, within FAREWELL.
        """
        until = time.monotonic() + FAREWELL
        try:
            self._request("close", {"events": events})
            self._channel.send_eof()  # an operation that is at work hears that as well
            while self._channel.receive(max(0.0, until - time.monotonic())):
                pass
        except (TimeoutError, DeployError):
            pass

    # --- the wire

    def _request(self, op: str, fields: dict[str, Any]) -> int:
        self._ids += 1
        request = {"id": self._ids, "op": op, "target": self.name, **fields}
        if self.state:
            request["state"] = self.state
        self._send(request)
        return self._ids

    def _send(self, message: dict[str, Any]) -> None:
        self._send_raw(json.dumps(message, ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n")

    def _send_piece(self, piece: bytes) -> bool:
        return self._send_raw(b'{"op":"bytes","size":%d}\n%s' % (len(piece), piece))

    def _send_raw(self, data: bytes) -> bool:
        """Whether there was somebody to take it."""
        try:
            with self._sending:
                self._channel.send(data)
        except HungUp:
            return False  # its own words win: they come when we read
        return True

    def _spoke(self) -> bool:
        """Whether the agent has said something that was not read yet; its end counts."""
        try:
            piece = self._channel.receive(0)
        except TimeoutError:
            return b"\n" in self._buffer
        self._buffer += piece
        return True

    def _ping(self) -> None:
        while not self._over.wait(ALIVE):
            try:
                self._send({"op": "alive"})
            except (OSError, DeployError):
                return

    def _marker(self, marker: bytes, patience: float) -> dict[str, Any]:
        """What the agent says of itself; what came before its marker is login noise."""
        until = time.monotonic() + patience
        while b"\n" not in self._buffer.partition(marker)[2]:
            piece = self._receive(max(0.1, until - time.monotonic()))
            if not piece:
                status = self._status()
                raise self.transport.explain(status, self._channel.errors(), self._buffer.decode("utf-8", "replace"))
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(marker)[2].partition(b"\n")
        return dict(json.loads(line))

    def _message(self, timeout: float) -> dict[str, Any]:
        while b"\n" not in self._buffer:
            piece = self._receive(timeout)
            if not piece:
                raise self._broken()
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\n")
        return dict(json.loads(line))

    def _down(self, error: GoneError, begun: str) -> DownError:
        """The container went away while a job was followed; one of which no word came may not have begun."""
        if begun == "goes on":
            todo = f"{error.todo}; then `deployctl resume --on {self.name}` brings the run to its end"
            return DownError(f"{error.what}, and the job of the cut-over with it", where=self.name, todo=todo)
        todo = f"{error.todo}; then `deployctl attach --on {self.name}` says how far the run came"
        return DownError(f"{error.what} when the job was sent", where=self.name, todo=todo)

    def _broken(self) -> TransportError:
        """Why the session ended before its answer: the container's end is told from the agent's by the host."""
        if self.container and self.seen and (gone := self.container.gone(self.seen)):
            return gone
        words = self._channel.errors().strip().splitlines()
        said = f": {words[-1]}" if words else ""
        return TransportError(f"the session broke off{said}", where=self.name, todo="see the target's state, then run again")

    def _receive(self, timeout: float) -> bytes:
        try:
            return self._channel.receive(timeout)
        except TimeoutError as error:
            raise self._silent(timeout) from error

    def _silent(self, timeout: float) -> SilentError:
        """Why nothing is heard: the host knows whether the container is frozen."""
        try:
            if self.container:
                self.container.admit()
        except TransportError as error:
            return SilentError(error.what, where=error.where, todo=error.todo)
        todo = "is something in it frozen, or the line dead? look, then run again"
        return SilentError(f"no word within {timeout:.0f} s", where=self.name, todo=todo)

    def _status(self) -> int:
        try:
            return self._channel.status(5)
        except TimeoutError:
            return 255

    def _answer_to(self, number: int, within: float = ANSWER) -> dict[str, Any]:
        while True:
            message = self._message(within)
            if message.get("id") == number:
                return self._answer(message)

    def _answer(self, message: dict[str, Any]) -> dict[str, Any]:
        error = message.get("error")
        if error is None:
            return dict(message["answer"])
        if error["kind"] == "busy":
            raise BusyError(_holder(error.get("holder", {})), where=self.name, todo=error["todo"])
        kind = RefusedError if error["kind"] == "refused" else AgentError
        raise kind(error["what"], where=f"{self.name}: {error['where']}" if error["where"] else self.name, todo=error["todo"])


def _holder(holder: dict[str, Any]) -> str:
    since = time.strftime("%H:%M:%S", time.localtime(holder["since"])) if "since" in holder else "an unknown time"
    who = f"{holder.get('user', 'somebody')}@{holder.get('host', 'an unknown host')}"
    doing = f", in {holder['op']}" if holder.get("op") else ""
    return f"{who} holds the workload since {since} (run {holder.get('run', 'unknown')}{doing})"
