"""An OpenSSH server on loopback, with keys and files of its own, for the user that runs the tests."""

from __future__ import annotations

import getpass
import os
import signal
import socket
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Host:
    """What the hosts file says of a host."""

    name: str
    ssh: str
    ssh_config: Path | None


class Server:
    """A running sshd; `known_hosts` and `ssh_config` are files to change before a connection."""

    def __init__(self, directory: Path, lines: tuple[str, ...], keys: tuple[str, ...]) -> None:
        self.directory = directory
        self.port = free_port()
        for kind in keys:
            self.key(f"host_{kind}", kind)
        self.key("user", "ed25519")
        (directory / "authorized_keys").write_text((directory / "user.pub").read_text())
        self.known_hosts = directory / "known_hosts"
        self.known_hosts.write_text("".join(self.known_line(f"host_{kind}") for kind in keys))
        self.ssh_config = directory / "ssh_config"
        self.write_config()
        hosts = [f"HostKey {directory}/host_{kind}" for kind in keys]
        own = [
            f"AuthorizedKeysFile {directory}/authorized_keys",
            "StrictModes no",
            "UsePAM no",
            "PasswordAuthentication no",
            "PidFile none",
        ]
        if not any(line.startswith("Subsystem") for line in lines):
            own.append("Subsystem sftp internal-sftp")
        (directory / "sshd_config").write_text("\n".join([*lines, *hosts, *own]) + "\n")
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        self.start()

    def start(self) -> None:
        """Starts the listener, and waits until it listens."""
        argv = [
            "/usr/sbin/sshd",
            "-D",
            "-e",
            "-f",
            str(self.directory / "sshd_config"),
            "-p",
            str(self.port),
            "-o",
            "ListenAddress=127.0.0.1",
        ]
        self.log = (self.directory / "log").open("ab")
        self.listener = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, start_new_session=True)
        deadline = time.monotonic() + 10
        while self.listener.poll() is None and time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise AssertionError((self.directory / "log").read_text())

    def end(self) -> None:
        """Ends the listener and every session of it."""
        self.kill_sessions()
        self.listener.kill()
        self.listener.wait()
        self.log.close()

    def kill_sessions(self) -> None:
        """Ends every session, not the listener."""
        for pid in self.children():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def children(self) -> list[int]:
        """The processes of open sessions."""
        found: list[int] = []
        look = [self.listener.pid]
        while look:
            pid = look.pop()
            with suppress(OSError):
                inner = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
                found += inner
                look += inner
        return found

    def key(self, name: str, kind: str, passphrase: str = "") -> Path:
        """Makes a key pair in the directory."""
        path = self.directory / name
        subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", name, "-f", str(path)], check=True)
        return path

    def known_line(self, key: str, name: str = "") -> str:
        """A line of known_hosts that holds the public half of a key."""
        return f"{name or f'[127.0.0.1]:{self.port}'} {' '.join((self.directory / f'{key}.pub').read_text().split()[:2])}\n"

    def write_config(self, *lines: str) -> None:
        """Writes the ssh_config: these lines win over the usual ones."""
        usual = ["HostName 127.0.0.1", f"Port {self.port}", f"User {getpass.getuser()}", f"UserKnownHostsFile {self.known_hosts}"]
        usual += ["GlobalKnownHostsFile none", f"IdentityFile {self.directory}/user", "IdentitiesOnly yes"]
        self.ssh_config.write_text("\n".join(["Host box", *lines, *usual]) + "\n")

    def connections(self) -> int:
        """How many logins there were."""
        return (self.directory / "log").read_text().count("Accepted publickey")

    @property
    def host(self) -> Host:
        return Host("box", "box", self.ssh_config)


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
