"""A container's configuration in /etc/pve: its keys, its snapshots' sections, its lock, and who may write it."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from .machine import Die, Settings

PVE = Path("/etc/pve")


@dataclass
class Config:
    """`keys` of the container, `snapshots` by name in the file's order. A description is the key `description`."""

    keys: dict[str, str] = field(default_factory=dict)
    snapshots: dict[str, dict[str, str]] = field(default_factory=dict)


def name_of(vmid: int) -> str:
    """The file, below /etc/pve; this node's only (contract 8)."""
    return f"nodes/{os.uname().nodename}/lxc/{vmid}.conf"


def vmids() -> list[int]:
    """The containers of this node."""
    return sorted(int(path.stem) for path in (PVE / "lxc").glob("*.conf") if path.stem.isdigit())


def read(vmid: int, status: int = 2) -> Config:
    """The configuration; `status` is the exit status where there is none (contract 3: 2, or 255 in a worker)."""
    try:
        text = (PVE / name_of(vmid)).read_text()
    except FileNotFoundError:
        raise Die(f"Configuration file '{name_of(vmid)}' does not exist", status) from None
    config = Config()
    section = config.keys
    for line in text.splitlines():
        if line.startswith("["):
            section = config.snapshots.setdefault(line.strip("[]"), {})
        elif line.startswith("#"):
            section["description"] = section.get("description", "") + line[1:] + "\n"
        elif ":" in line:
            key, _, value = line.partition(":")
            section[key] = value.strip()
    return config


def write(vmid: int, config: Config, settings: Settings) -> None:
    """Replace the file; /etc/pve is read-only without quorum (contract 3 and 8)."""
    path = PVE / name_of(vmid)
    partial = path.with_name(f"{path.name}.tmp.{os.getpid()}")
    if not settings.quorum:
        raise Die(f"unable to open file '{partial}' - Permission denied", 2)
    mode = path.stat().st_mode & 0o7777
    partial.write_text(text_of(config.keys) + "".join(f"\n[{name}]\n{text_of(keys)}" for name, keys in config.snapshots.items()))
    partial.chmod(mode)
    partial.replace(path)


def text_of(keys: dict[str, str]) -> str:
    """A section as the file holds it."""
    described = "".join(f"#{line}\n" for line in keys.get("description", "").splitlines())
    return described + "".join(f"{key}: {value}\n" for key, value in keys.items() if key != "description")


def check_lock(config: Config) -> None:
    """Refuse a container that is locked (contract 3)."""
    if held := config.keys.get("lock"):
        raise Die(f"CT is locked ({held})")


def unlock(vmid: int, settings: Settings) -> int:
    """`pct unlock` removes any value (contract 6)."""
    config = read(vmid)
    if "lock" not in config.keys:
        raise Die("no lock found trying to remove any lock")
    del config.keys["lock"]
    write(vmid, config, settings)
    return 0


def show(keys: dict[str, str]) -> str:
    """`pct config`: sorted keys, raw lxc lines last, the description percent-encoded (contract 6)."""
    lines = {key: quote(value, safe=" ") if key == "description" else value for key, value in keys.items()}
    order = [*sorted(key for key in lines if not key.startswith("lxc.")), *(key for key in lines if key.startswith("lxc."))]
    return "".join(f"{key}: {lines[key]}\n" for key in order)
