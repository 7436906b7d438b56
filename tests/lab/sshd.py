"""The lab's sshd, with keys, configuration and client configuration of its own."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

from tests.lab import processes
from tests.lab.errors import LabError
from tests.lab.host import NODE, Host

SERVER = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {lab}/sshd/host_key
PidFile {lab}/sshd/pid
AuthorizedKeysFile {lab}/sshd/authorized_keys
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
AcceptEnv LANG LC_*
UseDNS no
PrintMotd no
LogLevel VERBOSE
MaxStartups 100
Subsystem sftp internal-sftp
"""

CLIENT = """\
# Made by `lab up`: the lab's Proxmox host, and three that must fail.
Host {node}
  Port {port}
  UserKnownHostsFile {lab}/known_hosts
# The same host, with a key that nobody has seen yet.
Host unknown-key
  Port {port}
  UserKnownHostsFile {lab}/known_hosts.empty
# The same host, where another key was seen before.
Host wrong-key
  Port {port}
  UserKnownHostsFile {lab}/known_hosts.wrong
# Nobody listens there.
Host unreachable
  Port {closed}
  UserKnownHostsFile {lab}/known_hosts
Host *
  HostName 127.0.0.1
  User root
  IdentityFile {lab}/user_key
  IdentitiesOnly yes
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
"""


def free_port(first: int) -> int:
    """The first port from `first` on that nobody listens on."""
    for port in range(first, first + 500):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise LabError(f"lab: no free port from {first} on", "end what listens there")


def closed_port() -> int:
    """A low port that nobody listens on and that no program is given by chance."""
    for port in range(1, 20):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return port
    raise LabError("lab: ports 1 to 19 are all open", "close one: the ssh_config needs a closed port for `unreachable`")


def make_key(path: Path) -> str:
    """Make a key pair unless it is there; returns the public key without its comment."""
    if not path.exists():
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "deployctl-lab", "-f", str(path)], check=True)
    return " ".join(path.with_name(path.name + ".pub").read_text().split()[:2])


def configure(directory: Path, port: int) -> None:
    """Write keys and both configurations for this port."""
    (directory / "sshd").mkdir(exist_ok=True)
    host_key, other_key = make_key(directory / "sshd/host_key"), make_key(directory / "sshd/other_key")
    (directory / "sshd/authorized_keys").write_text(make_key(directory / "user_key") + "\n")
    (directory / "sshd/config").write_text(SERVER.format(lab=directory, port=port))
    (directory / "known_hosts").write_text(f"[127.0.0.1]:{port} {host_key}\n")
    (directory / "known_hosts.wrong").write_text(f"[127.0.0.1]:{port} {other_key}\n")
    (directory / "known_hosts.empty").write_text("")
    (directory / "ssh_config").write_text(CLIENT.format(node=NODE, lab=directory, port=port, closed=closed_port()))


def pid(host: Host) -> int | None:
    """The pid of the listening sshd on this machine, None when it is not running."""
    keeper = host.keeper()
    try:
        inner = int((host.directory / "sshd/pid").read_text())
    except (OSError, ValueError):
        return None
    found = processes.outer_pid(keeper.pid, inner) if keeper else None
    return found if found and "sshd" in " ".join(processes.command_line(found)) else None


def start(host: Host, port: int) -> None:
    """Start sshd in the lab's namespaces; returns when it listens."""
    host.daemon("/usr/sbin/sshd", "-f", f"{host.directory}/sshd/config", "-E", f"{host.directory}/sshd/log")

    def listens() -> bool:
        return pid(host) is not None

    processes.wait_for(f"sshd on port {port}", listens, 10, f"read {host.directory}/sshd/log")
