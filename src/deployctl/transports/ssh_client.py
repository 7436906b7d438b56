"""A logged-in SSH connection that accepts known host keys only and asks no questions. Knows no exec and no put.

Fabric installs a client that accepts every host key, reads no known_hosts and follows no Include; ours takes its place.
"""

from __future__ import annotations

import base64
import binascii
import os
import random
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fabric
import paramiko
from paramiko.common import MSG_CHANNEL_REQUEST

from deployctl.errors import TransportError
from deployctl.transports.known_hosts import KnownKey, algorithms, fingerprint, known_keys
from deployctl.transports.ssh_config import Route

BROKEN = (paramiko.SSHException, OSError, EOFError)  # what paramiko raises when a connection does not hold
PAUSES = (0.5, 1.5)  # seconds before another attempt to connect, each up to doubled at random


class Wire(socket.socket):
    """The socket of a connection; `heard` is when the far side last said anything (monotonic seconds)."""

    heard = 0.0

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Receives, and notes the time."""
        data = super().recv(size, flags)
        self.heard = time.monotonic()
        return data


def _note_signal(channel: paramiko.Channel, message: paramiko.Message) -> None:
    """paramiko drops `exit-signal`: the status is set here as a shell would, to 128 + n. Source: RFC 4254, 6.10."""
    request = paramiko.Message(message.get_remainder())
    if request.get_text() == "exit-signal":
        request.get_boolean()
        number = getattr(signal, f"SIG{request.get_text()}", 127)
        channel.exit_status = 128 + int(number)
        channel.status_event.set()
    channel._handle_request(message)  # type: ignore[attr-defined]


class _Transport(paramiko.Transport):
    _channel_handler_table = {  # noqa: RUF012
        **paramiko.Transport._channel_handler_table,  # type: ignore[attr-defined]
        MSG_CHANNEL_REQUEST: _note_signal,
    }


class _KnownKeys(paramiko.MissingHostKeyPolicy):
    """Judges every host key: paramiko's own table stays empty, so this is asked each time."""

    def __init__(self, route: Route, where: str) -> None:
        self._route = route
        self._where = where
        self.known = known_keys(route)
        self.asked = False

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        """Returns for a known key. Raises TransportError for any other."""
        self.asked = True
        same = [known for known in self.known if known.blob == key.asbytes()]
        if same and not any(known.revoked for known in same):
            return
        raise self._refusal(key.get_name(), fingerprint(key.asbytes()), same)

    def _refusal(self, kind: str, shown: str, same: list[KnownKey]) -> TransportError:
        place = self._route.place
        look = f"compare it with `ssh-keygen -lf` of the key in /etc/ssh on the host itself, then connect once with `{self._route.command}`"
        if same:
            return TransportError(f"the {kind} key {shown} of {place} is revoked in {same[0].place}", where=self._where)
        old = [known for known in self.known if known.kind == kind and not known.revoked]
        if old:
            what = f"the host key of {place} has changed: it shows {kind} {shown}, but {old[0].place} has {fingerprint(old[0].blob)}"
            todo = f"find out why: a new host, or someone in between; if it is right, remove {old[0].place}, and {look}"
            return TransportError(what, where=self._where, todo=todo)
        others = sorted({known.kind for known in self.known})
        more = f" (known are other types of it: {', '.join(others)})" if others else ""
        return TransportError(f"the host key of {place} is unknown: {kind} {shown}{more}", where=self._where, todo=look)

    def transport(self, sock: Any, **options: Any) -> paramiko.Transport:
        """The transport factory of the client: asks for the key types first that are known."""
        transport = _Transport(sock, **options)
        wishes = transport.get_security_options()
        wishes.key_types = algorithms(self.known, wishes.key_types)
        return transport


class _Login:
    """Tries the user's keys: those of the agent, then the identity files. No password, no question."""

    def __init__(self, route: Route, where: str) -> None:
        self._route = route
        self._where = where
        self._tried: list[str] = []

    def authenticate(self, transport: paramiko.Transport) -> None:
        """The auth_strategy of the client. Raises TransportError that names what was tried."""
        agent = self._agent()
        try:
            for label, key in self._keys(agent):
                reason = self._offer(transport, key)
                if not reason:
                    return
                self._tried.append(f"{label}: {reason}")
                if not transport.is_active():
                    break
        finally:
            if agent:
                agent.close()
        tried = "; ".join(self._tried) or "there is no key: no agent, and none of the identity files exists"
        todo = f"load the right key into ssh-agent, or see that `{self._route.command}` works without a question"
        raise TransportError(f"login as {self._route.user} at {self._route.place} failed: {tried}", where=self._where, todo=todo)

    def _agent(self) -> paramiko.Agent | None:
        path = os.environ.get("SSH_AUTH_SOCK")
        if not (path and self._route.use_agent and Path(path).exists()):
            return None
        try:
            return paramiko.Agent()
        except BROKEN as error:
            self._tried.append(f"the agent at {path}: {error}")
            return None

    def _offer(self, transport: paramiko.Transport, key: paramiko.PKey) -> str:
        try:
            rest = transport.auth_publickey(self._route.user, key)
        except paramiko.BadAuthenticationType as error:
            return f"the host takes no keys, only {', '.join(error.allowed_types)}"
        except paramiko.AuthenticationException:
            return "refused"
        except BROKEN as error:
            return f"broken off ({error})" if str(error) else "broken off"
        return "" if transport.is_authenticated() else f"the host wants {', '.join(rest)} as well"

    def _keys(self, agent: paramiko.Agent | None) -> Iterator[tuple[str, paramiko.PKey]]:
        """Agent keys that an identity file names, other agent keys, other identity files: OpenSSH's order."""
        public = [_public_blob(path) for path in self._route.identities]
        held = sorted(agent.get_keys() if agent else (), key=lambda key: key.blob not in public)
        for key in held:
            label = f"agent key {key.comment or fingerprint(key.blob)}"
            if self._route.identities_only and key.blob not in public:
                continue
            if getattr(key, "inner_key", None) is None:
                self._tried.append(f"{label}: type {key.get_name()} is not supported")
                continue
            yield label, key
        for path, blob in zip(self._route.identities, public, strict=True):
            if blob is None or blob not in [key.blob for key in held]:
                yield from self._load(path)

    def _load(self, path: Path) -> Iterator[tuple[str, paramiko.PKey]]:
        try:
            yield str(path), paramiko.PKey.from_path(path)
        except FileNotFoundError:
            return
        except TypeError:  # cryptography: a passphrase is needed
            self._tried.append(f"{path}: has a passphrase, and the agent does not hold it")
        except (OSError, ValueError, paramiko.SSHException, paramiko.pkey.UnknownKeyType) as error:
            self._tried.append(f"{path}: cannot be read as a private key ({type(error).__name__})")


def connect(route: Route, where: str) -> fabric.Connection:
    """Opens and logs in. What breaks before the host showed its key is tried again, at most twice. Raises TransportError."""
    for pause in (*PAUSES, None):
        policy = _KnownKeys(route, where)
        wire = _dial(route, where)
        config = fabric.Config(ssh_config=paramiko.SSHConfig(), lazy=True)  # no file of fabric's or ssh's is read
        options = {"sock": wire, "transport_factory": policy.transport, "auth_strategy": _Login(route, where), "channel_timeout": 60}
        connection = fabric.Connection(route.hostname, route.user, route.port, config=config, connect_kwargs=options)
        connection.client = paramiko.SSHClient()
        connection.client.set_missing_host_key_policy(policy)
        try:
            connection.open()
            return connection
        except BaseException as error:
            connection.client.close()
            wire.close()
            if not isinstance(error, BROKEN):
                raise
            if policy.asked or pause is None:
                what = f"ssh to {route.place} broke off: {error or type(error).__name__}"
                raise TransportError(what, where=where, todo=f"see what `{route.command}` says") from error
        time.sleep(pause * random.uniform(1, 2))
    raise AssertionError("unreachable")


def _dial(route: Route, where: str) -> Wire:
    """A connected socket without Nagle's delay: it is 40 ms a command. Raises TransportError."""
    try:
        plain = socket.create_connection((route.hostname, route.port), route.connect_timeout)
    except socket.gaierror as error:
        todo = "mend the name in the hosts file or the ssh_config"
        raise TransportError(f"no address for '{route.hostname}': {error.strerror}", where=where, todo=todo) from error
    except TimeoutError as error:
        what = f"{route.place} did not answer within {route.connect_timeout:g} s"
        raise TransportError(what, where=where, todo="is it up, and does a firewall stand between?") from error
    except OSError as error:
        what = f"{route.place} cannot be reached: {error.strerror or error}"
        raise TransportError(what, where=where, todo="is it up, does sshd run there, and is the port right?") from error
    wire = Wire(plain.family, plain.type, plain.proto, plain.detach())
    wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    wire.heard = time.monotonic()
    return wire


class Watch:
    """Ends a connection whose far side is silent for `quiet` seconds though it was asked; paramiko counts no answers."""

    def __init__(self, transport: paramiko.Transport, quiet: float) -> None:
        self._transport = transport
        self._quiet = quiet
        self._over = threading.Event()
        self.silent = False
        threading.Thread(target=self._run, daemon=True, name="deployctl-keepalive").start()

    def stop(self) -> None:
        """Ends the watch, not the connection."""
        self._over.set()

    def _run(self) -> None:
        asking: threading.Thread | None = None
        while not self._over.wait(self._quiet / 3) and self._transport.is_active():
            wire: Any = self._transport.sock
            if time.monotonic() - wire.heard > self._quiet:
                self.silent = True
                self._transport.close()
            elif not (asking and asking.is_alive()):
                asking = threading.Thread(target=self._ask, daemon=True, name="deployctl-keepalive-ask")
                asking.start()

    def _ask(self) -> None:
        try:
            self._transport.global_request("keepalive@openssh.com", wait=True)
        except BROKEN:
            pass


def _public_blob(path: Path) -> bytes | None:
    """The public key beside an identity file, or in it."""
    for candidate in (path.with_name(path.name + ".pub"), path):
        try:
            return base64.b64decode(candidate.read_text("ascii").split()[1], validate=True)
        except (OSError, ValueError, IndexError, binascii.Error):
            continue
    return None
