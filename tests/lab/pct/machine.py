"""What pct knows of its node: whether containers run, how the lab wants the node to be; and where the lab keeps its own files."""

import fcntl
import json
import os
import subprocess
import time
from dataclasses import dataclass, fields
from pathlib import Path

LAB = Path("/run/deployctl-lab")


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
    """How the lab wants calls to behave; docs/lab.md says what each means."""

    delay: float = 0.0  # seconds that a start-up takes
    push_fault: str | None = None
    lock_wait: float = 10.0  # seconds (contract 1, point 10)
    quorum: bool = True
    pmxcfs: bool = True
    keep_env: bool = True  # False: a pct older than 8.2
    ha: bool = False


def settings() -> Settings:
    """What settings.json says now; a lab of before a setting was made has its default."""
    known = {field.name for field in fields(Settings)}
    return Settings(**{name: value for name, value in json.loads((LAB / "settings.json").read_text()).items() if name in known})


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
