"""What pct knows of its node: containers and their configuration, whether they run; and where the lab keeps its own files."""

import fcntl
import json
import os
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

LAB = Path("/run/deployctl-lab")
PVE = Path("/etc/pve")


class Die(Exception):
    """Perl's die: a text, and the errno that happened to be left over as the exit status, else 255 (contract 1, point 4)."""

    def __init__(self, text: str, status: int = 255) -> None:
        super().__init__(text)
        self.status = status


def environment() -> dict[str, str]:
    """The environment that the caller gave; in a C locale Python puts an LC_CTYPE of its own into os.environ."""
    pairs = Path("/proc/self/environ").read_bytes().split(b"\0")
    return {os.fsdecode(key): os.fsdecode(value) for key, found, value in (pair.partition(b"=") for pair in pairs) if found}


def note_call(arguments: list[bytes]) -> None:
    """Append the call to calls.jsonl, as one write, so that parallel calls do not mix."""
    call = {"argv": [word.decode("utf-8", "replace") for word in arguments], "at": time.time(), "pid": os.getpid()}
    line = (json.dumps(call) + "\n").encode()
    try:
        descriptor = os.open(LAB / "calls.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except PermissionError:
        return  # not root: it is refused anyway
    fcntl.flock(descriptor, fcntl.LOCK_EX)  # a long argv may take more than one write
    while line:
        line = line[os.write(descriptor, line) :]
    os.close(descriptor)


@dataclass(frozen=True)
class Settings:
    """How the lab wants calls to behave: seconds that a start-up takes, and in which way every push fails."""

    delay: float
    push_fault: str | None


def settings() -> Settings:
    """What settings.json says now."""
    return Settings(**json.loads((LAB / "settings.json").read_text()))


def vmids() -> list[int]:
    """The containers of this node."""
    return sorted(int(path.stem) for path in (PVE / "lxc").glob("*.conf") if path.stem.isdigit())


def config(vmid: int) -> dict[str, str]:
    """The container's configuration, without its snapshots."""
    name = f"nodes/{socket.gethostname()}/lxc/{vmid}.conf"
    try:
        text = (PVE / name).read_text()
    except FileNotFoundError:
        raise Die(f"Configuration file '{name}' does not exist", 2) from None
    found: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("["):
            break
        key, colon, value = line.partition(":")
        if colon and not line.startswith("#"):
            found[key] = value.strip()
    return found


def running(vmid: int) -> bool:
    """Whether LXC's command socket is there (contract 4)."""
    path = subprocess.run(["lxc-config", "lxc.lxcpath"], capture_output=True, text=True).stdout.strip()
    wanted = f"@{path}/{vmid}/command"
    with open("/proc/net/unix") as sockets:
        return any(line.rstrip().endswith(wanted) for line in sockets)


def status(vmid: int) -> str:
    """running or stopped, nothing else (contract 6)."""
    return "running" if running(vmid) else "stopped"


def init_pid(vmid: int) -> int:
    """The pid of the container's PID 1 on this node."""
    found = subprocess.run(["lxc-info", "-n", str(vmid), "-pH"], capture_output=True, text=True)
    return int(found.stdout)
