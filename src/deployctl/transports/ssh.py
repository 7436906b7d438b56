"""A host over SSH: one connection, opened when it is first needed, for every exec and put. Knows no container."""

from __future__ import annotations

import errno
import secrets
import shlex
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fabric
import paramiko

from deployctl.errors import TransportError
from deployctl.transports.base import CHUNK, HungUp, Tail, exec, no_agent
from deployctl.transports.ssh_client import BROKEN, Watch, connect
from deployctl.transports.ssh_config import HostSpec, resolve
from deployctl.values import show_size

QUIET = 45.0  # seconds without a sign of life after which a connection counts as lost
LATE_WORDS = 5.0  # seconds that stderr may come after the exit status; what outlives the program may hold it open for longer
ROOM_FROM = 1 << 20  # bytes of a file from which it is worth asking the host for its room
CLOSE_WITHIN = 5.0  # seconds for cleaning up on the host
FAILED = (*BROKEN, paramiko.SFTPError)


class SshChannel:
    """A program at the far side: one session of the connection, without a terminal."""

    def __init__(self, channel: paramiko.Channel, link: _Link, name: str) -> None:
        self._channel = channel
        self._link = link
        self._name = name
        self._tail = Tail()
        self._ready = threading.Event()  # not the channel's timeout: that one would hold for send and stderr as well
        channel.in_buffer.set_event(self._ready)
        self._drain = threading.Thread(target=self._read_errors, daemon=True, name="deployctl-stderr")
        self._drain.start()

    def send(self, data: bytes) -> None:
        """Sends all of data. Raises HungUp."""
        view = memoryview(data)
        try:
            for start in range(0, len(view), CHUNK):
                self._channel.sendall(bytes(view[start : start + CHUNK]))
        except BROKEN as error:
            raise HungUp("the far side closed the program's stdin") from error

    def send_eof(self) -> None:
        """Ends the program's stdin."""
        try:
            self._channel.shutdown_write()
        except BROKEN:
            pass

    def receive(self, timeout: float | None) -> bytes:
        """Some bytes of stdout, empty at its end. Raises TimeoutError, or TransportError when the connection broke."""
        if not self._ready.wait(timeout):
            raise TimeoutError(f"nothing on stdout for {timeout} s")
        try:
            data = self._channel.recv(CHUNK)
        except BROKEN as error:
            raise self._link.lost(self._name) from error
        if not data and not self._channel.eof_received and not self._link.alive:
            raise self._link.lost(self._name)
        return data

    def errors(self) -> str:
        """The last 64 KiB of stderr so far."""
        return self._tail.text()

    def status(self, timeout: float) -> int:
        """The exit status, 128 + n for signal n. Raises TimeoutError, or TransportError when it will never come."""
        if not self._channel.status_event.wait(timeout):
            raise TimeoutError(f"no exit status for {timeout} s")
        self._drain.join(LATE_WORDS)
        if self._channel.exit_status < 0:
            raise self._link.lost(self._name)
        return self._channel.exit_status

    def close(self) -> None:
        """Closes the session; the program is told by the end of its stdin only."""
        try:
            self._channel.close()
        except BROKEN:
            pass
        self._drain.join(0.5)

    def _read_errors(self) -> None:
        try:
            while data := self._channel.recv_stderr(CHUNK):
                self._tail.add(data)
        except BROKEN:
            pass


class _Link:
    """A connection that is logged in, with its watch."""

    def __init__(self, connection: fabric.Connection, quiet: float) -> None:
        self.connection = connection
        self.transport: paramiko.Transport = connection.transport
        self._watch = Watch(self.transport, quiet)
        self._quiet = quiet

    @property
    def alive(self) -> bool:
        return self.transport.is_active()

    def lost(self, name: str) -> TransportError:
        why = f": nothing heard for {self._quiet:.0f} s" if self._watch.silent else ""
        todo = "what was started there may still run: look, then run again"
        return TransportError(f"the ssh connection broke{why}", where=name, todo=todo)

    def close(self) -> None:
        self._watch.stop()
        self.connection.client.close()


class Ssh:
    """The transport to a host, and the connection that all containers of that host share.

    A host that allows few sessions a connection (sshd's MaxSessions) gets another connection when they are used up.
    """

    container: None = None

    def __init__(self, host: HostSpec, quiet: float = QUIET) -> None:
        self.name = host.name
        self._host = host
        self._quiet = quiet
        self._opening = threading.RLock()
        self._filing = threading.RLock()  # paramiko's SFTPClient loses answers when two threads wait for theirs
        self._links: list[_Link] = []
        self._sftp: paramiko.SFTPClient | None = None
        self._directories: list[str] = []

    def open(self, argv: Sequence[str]) -> SshChannel:
        """Starts a program. The one place where an argv becomes a line for a shell. Raises TransportError."""
        link, channel = self._session()
        try:
            channel.exec_command(shlex.join(argv))
        except BROKEN as error:
            refused = TransportError("the host refused to start a program", where=self.name, todo="may its account run programs?")
            raise (refused if link.alive else link.lost(self.name)) from error
        return SshChannel(channel, link, self.name)

    def put(self, source: Path, destination: str, progress: Callable[[int], None] | None = None) -> None:
        """Copies a file by SFTP to a new private one (0600). Raises TransportError, and leaves no part then."""
        with self._told(f"'{source}' cannot be put to '{destination}'"):
            sftp = self._files()
            self._require_room(destination, source.stat().st_size)
            with source.open("rb") as old:
                new = self._create(sftp, destination)
                try:
                    new.set_pipelined(True)
                    while data := old.read(CHUNK):
                        new.write(data)
                        if progress:
                            progress(old.tell())
                    new.close()
                    if (size := sftp.stat(destination).st_size) != old.tell():
                        raise OSError(f"{size} of {old.tell()} bytes arrived")
                except BaseException:
                    self.remove(destination)
                    raise

    def _require_room(self, destination: str, size: int) -> None:
        """Raises TransportError when a large file will not fit; a host that cannot tell is believed to have room."""
        if size < ROOM_FROM:
            return
        directory = destination.rpartition("/")[0] or "/"
        done = exec(self, ["/usr/bin/env", "stat", "-f", "-c", "%a %S %d %c", "--", directory], timeout=QUIET)
        figures = done.stdout.split()
        if done.status or len(figures) != 4 or not all(figure.isdigit() for figure in figures):
            return
        blocks, block, inodes, all_inodes = map(int, figures)
        if blocks * block < size or (all_inodes and not inodes):
            what = f"'{directory}' has no room: {show_size(size)} are needed, {show_size(blocks * block)} and {inodes} inodes are free"
            raise TransportError(what, where=self.name, todo="make room on the host, or use `via: session`, which stages nothing there")

    def private_directory(self) -> str:
        """A new directory on the host that only its user can enter; gone after close(), unless it was given away by `release`."""
        name = f"/tmp/deployctl-{secrets.token_hex(8)}"
        with self._told(f"'{name}' cannot be made"):
            self._files().mkdir(name, 0o700)
        self._directories.append(name)
        return name

    def release(self, directory: str) -> None:
        """Says that somebody on the host has removed the private directory."""
        self._directories.remove(directory)

    def remove(self, path: str) -> None:
        """Removes a file of ours on the host, if it can be done."""
        with self._filing:
            try:
                if self._sftp:
                    self._sftp.remove(path)
            except FAILED:
                pass

    def explain(self, status: int, stderr: str, noise: str = "") -> TransportError:
        """The reason why an agent did not answer."""
        return no_agent(self.name, self.name, status, stderr, noise)

    def close(self) -> None:
        """Removes the private directories that are left, within 5 s, and ends the connection."""
        links, self._links = self._links, []
        if self._directories and links[0].alive:
            sweep = threading.Thread(target=self._sweep, args=(self._sftp,), daemon=True, name="deployctl-sweep")
            sweep.start()
            sweep.join(CLOSE_WITHIN)
        self._sftp, self._directories = None, []
        for link in links:
            link.close()

    def _sweep(self, sftp: paramiko.SFTPClient) -> None:
        try:
            for directory in self._directories:
                for name in sftp.listdir(directory):
                    sftp.remove(f"{directory}/{name}")
                sftp.rmdir(directory)
        except FAILED:
            pass

    def _link(self) -> _Link:
        with self._opening:
            if not self._links:
                self._links.append(_Link(connect(resolve(self._host), self.name), self._quiet))
            return self._links[-1]

    def _session(self) -> tuple[_Link, paramiko.Channel]:
        link = self._link()
        try:
            return link, link.transport.open_session()
        except paramiko.ChannelException:  # MaxSessions are open
            with self._opening:
                link = _Link(connect(resolve(self._host), self.name), self._quiet)
                self._links.append(link)
        except BROKEN as error:
            raise link.lost(self.name) from error
        try:
            return link, link.transport.open_session()
        except BROKEN as error:
            raise TransportError("the host opens no session", where=self.name, todo="see MaxSessions in its sshd_config") from error

    def _files(self) -> paramiko.SFTPClient:
        if not self._sftp:
            _, channel = self._session()
            try:
                channel.invoke_subsystem("sftp")
                self._sftp = paramiko.SFTPClient(channel)
            except FAILED as error:
                todo = "add `Subsystem sftp internal-sftp` to its sshd_config; its login files must print nothing"
                raise TransportError("the host offers no SFTP", where=self.name, todo=todo) from error
        return self._sftp

    @staticmethod
    def _create(sftp: Any, path: str) -> paramiko.SFTPFile:
        """A new file, private from its first moment: SFTPClient.open cannot give a mode, and a chmod after it comes late."""
        wishes = paramiko.SFTPAttributes()
        wishes.st_mode = 0o600
        flags = paramiko.sftp.SFTP_FLAG_WRITE | paramiko.sftp.SFTP_FLAG_CREATE | paramiko.sftp.SFTP_FLAG_EXCL
        try:
            _, answer = sftp._request(paramiko.sftp.CMD_OPEN, path, flags, wishes)
        except OSError as error:
            if error.errno is None:  # SFTP 3 has one number for all refusals but two
                sftp.lstat(path)
                raise FileExistsError(errno.EEXIST, "it is there already") from error
            raise
        return paramiko.SFTPFile(sftp, answer.get_binary(), "wb")

    @contextmanager
    def _told(self, what: str) -> Iterator[None]:
        try:
            with self._filing:
                yield
        except FAILED as error:
            raise TransportError(f"{what}: {getattr(error, 'strerror', None) or error}", where=self.name) from error
