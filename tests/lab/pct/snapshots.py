"""`pct snapshot`, `delsnapshot`, `listsnapshot` (contract 7). The lab saves no disk, only the configuration: there is no rollback."""

import re
import subprocess
import time
from pathlib import Path

from . import config, machine
from .config import Config
from .machine import Die, Settings
from .words import Parsed
from .worker import Failed, lock, work

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]+")
LONGEST = 40
RESERVED = ("current", "vzdump")
WITHOUT = ("dir", "nfs", "cifs")  # kinds of storage on which a container has no snapshots
STORAGES = Path("/etc/pve/storage.cfg")


def snapshot(vmid: int, parsed: Parsed, settings: Settings) -> int:
    """The command; returns the exit status."""
    name = parsed.arguments["snapname"]
    if name in RESERVED or not NAME.fullmatch(name) or len(name) > LONGEST:
        raise Die(f"400 Parameter verification failed.\nsnapname: '{name}' is no name of a snapshot", 2)
    lock(vmid, settings.lock_wait)
    return work(lambda: make(vmid, name, parsed.options.get("description", ""), settings), failure=255)


def make(vmid: int, name: str, description: str, settings: Settings) -> None:
    """Mark the configuration, freeze, thaw, write the section."""
    now = config.read(vmid)
    config.check_lock(now)
    if name in now.snapshots:
        raise Failed(f"snapshot name '{name}' already used")
    if not possible(now):
        raise Failed("snapshot feature is not available")
    config.write(vmid, Config({**now.keys, "lock": "snapshot"}, now.snapshots), settings)
    if machine.running(vmid):
        subprocess.run(["lxc-freeze", "-n", str(vmid)], check=True)
        subprocess.run(["lxc-unfreeze", "-n", str(vmid)], check=True)
    kept = {**now.keys, "snaptime": str(int(time.time()))} | ({"description": description} if description else {})
    now.snapshots[name] = kept
    now.keys["parent"] = name
    config.write(vmid, now, settings)


def possible(now: Config) -> bool:
    """No bind or device mount point, and every volume on a storage that has snapshots."""
    kinds = dict(line.split(": ", 1)[::-1] for line in STORAGES.read_text().splitlines() if re.match(r"[a-z]+: ", line))
    volumes = [value.split(",")[0] for key, value in now.keys.items() if key == "rootfs" or re.fullmatch(r"mp[0-9]+", key)]
    return all(not volume.startswith("/") and kinds.get(volume.split(":")[0], "dir") not in WITHOUT for volume in volumes)


def delete(vmid: int, parsed: Parsed, settings: Settings) -> int:
    """`delsnapshot`."""
    lock(vmid, settings.lock_wait)
    return work(lambda: remove(vmid, parsed.arguments["snapname"], settings), failure=255)


def remove(vmid: int, name: str, settings: Settings) -> None:
    """Take the section out; whoever had it as parent gets its parent."""
    now = config.read(vmid)
    config.check_lock(now)
    if name not in now.snapshots:
        raise Failed(f"snapshot '{name}' does not exist")
    parent = now.snapshots.pop(name).get("parent")
    for keys in (now.keys, *now.snapshots.values()):
        if keys.get("parent") == name:
            del keys["parent"]
            keys.update({"parent": parent} if parent else {})
    config.write(vmid, now, settings)


def tree(now: Config) -> str:
    """`listsnapshot`: each below the one that it was made from, `current` last."""
    lines = []
    for name, keys in now.snapshots.items():
        made = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(int(keys.get("snaptime", "0"))))
        lines.append((name, made, keys.get("description", "").strip() or "no-description"))
    lines.append(("current", "", "You are here!"))
    return "".join(f"{' ' * depth}`-> {name:<{28 - depth}} {made:<23} {text}\n" for depth, (name, made, text) in enumerate(lines))
