"""What a Proxmox host knows of a container, by one command over the open connection, before anything enters it.

Reads the host's own files where the user may, which costs milliseconds; else asks pct. It acts on nothing.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from deployctl.transports.base import Transport, exec

FACTS_WITHIN = 30.0  # seconds: a cluster file system that hangs
HARMLESS_LOCKS = ("mounted",)  # `pct mount` leaves it; it hinders neither start nor stop
# Each part begins with a line of the mark and its name, since login files may print. lxc-info does not notice a freeze that did not come
# from LXC, so the freezer is asked too; cgroup.events is that of cgroup version 2.
_SCRIPT = r"""
PATH=/usr/sbin:/usr/bin:/sbin:/bin
mark=$1 ct=$2
exec 2>/dev/null
part() { printf '\n%s %s\n' "$mark" "$1"; }
local=$(readlink /etc/pve/local); node=${local##*/}
part node; echo "$node"
if [ -r /etc/pve/.vmlist ] && [ -n "$node" ]; then
    file=/etc/pve/nodes/$node/lxc/$ct.conf
    part list; cat /etc/pve/.vmlist
    part config; cat "$file"
    part mode; stat -c %A "$file"
    part storages; cat /etc/pve/storage.cfg
    part state; lxc-info -n "$ct" -sH
    part init; lxc-info -n "$ct" -pH
    part freezer; lxc-cgroup -n "$ct" cgroup.events || lxc-cgroup -n "$ct" freezer.state
else
    export LC_ALL=C.UTF-8
    part said; /usr/sbin/pct status "$ct" 2>&1
    part config; /usr/sbin/pct config "$ct" --current 1
fi
part end
"""


@dataclass(frozen=True)
class Snapshot:
    """A snapshot of a container; `made` is in seconds since 1970."""

    name: str
    made: int


@dataclass(frozen=True)
class Facts:
    """A container as its host sees it.

    `node` is the host's name in its cluster, `owner` the node that has the guest with this number (None: there is none), `kind` "lxc" or
    "qemu", `state` LXC's word (RUNNING, STOPPED, FROZEN, …; "" where nobody says), `init` the host's pid of its PID 1, `config` its keys,
    `storages` kinds by name, `said` what pct said where the files could not be read.
    """

    vmid: int
    node: str
    owner: str | None
    kind: str
    state: str
    init: str
    config: Mapping[str, str]
    snapshots: tuple[Snapshot, ...]
    writable: bool
    storages: Mapping[str, str]
    said: str = ""

    @property
    def lock(self) -> str:
        """What works on it ("backup", "migrate", …), "" for nothing that hinders."""
        held = self.config.get("lock", "")
        return "" if held in HARMLESS_LOCKS else held

    @property
    def template(self) -> bool:
        """Whether it is only there to be cloned."""
        return self.config.get("template") == "1"

    @property
    def unprivileged(self) -> bool:
        """Whether its root is another user on the host."""
        return self.config.get("unprivileged") == "1"

    @property
    def volumes(self) -> Mapping[str, str]:
        """Where its file systems lie: `local-lvm:vm-200-disk-0`, or a path of the host for what is bound in."""
        keys = (key for key in self.config if key == "rootfs" or re.fullmatch(r"mp\d+", key))
        return {key: self.config[key].split(",")[0].removeprefix("volume=") for key in keys}


def facts(host: Transport, vmid: int) -> Facts:
    """What the host says of its container. Raises TransportError when the host says nothing."""
    mark = f"deployctl-facts {secrets.token_hex(8)}"
    done = exec(host, ["/bin/sh", "-c", _SCRIPT, "sh", mark, str(vmid)], timeout=FACTS_WITHIN)
    parts = dict(_parts(done.stdout.decode("utf-8", "replace"), mark))
    config, snapshots = _config(parts.get("config", ""))
    said = parts.get("said", "").strip()
    owner, kind = _listed(parts["list"], vmid) if "list" in parts else (parts.get("node", "").strip(), "lxc")
    state = parts.get("state", "").strip() or {"status: running": "RUNNING", "status: stopped": "STOPPED"}.get(said, "")
    if state == "RUNNING" and re.search(r"frozen 1|FROZEN|FREEZING", parts.get("freezer", "")):
        state = "FROZEN"
    return Facts(
        vmid=vmid,
        node=parts.get("node", "").strip(),
        owner=owner,
        kind=kind,
        state=state,
        init=parts.get("init", "").strip(),
        config=config,
        snapshots=snapshots,
        writable="w" in parts.get("mode", "w"),
        storages=dict(_storages(parts.get("storages", ""))),
        said=said,
    )


def _parts(text: str, mark: str) -> Iterator[tuple[str, str]]:
    for piece in text.split(f"\n{mark} ")[1:]:
        name, _, body = piece.partition("\n")
        yield name, body


def _listed(text: str, vmid: int) -> tuple[str | None, str]:
    """(the node that has the guest, its kind); (None, "") where no node has one. Source: /etc/pve/.vmlist."""
    try:
        found: dict[str, Any] | None = json.loads(text).get("ids", {}).get(str(vmid))
    except ValueError:
        return None, ""
    return (found["node"], found["type"]) if found else (None, "")


def _config(text: str) -> tuple[dict[str, str], tuple[Snapshot, ...]]:
    """The keys, and the snapshots, which are sections of their own; one that is being made or removed is none."""
    sections: dict[str, dict[str, str]] = {"": {}}
    name = ""
    for line in text.splitlines():
        if line.startswith("["):
            name = line.strip("[]")
            sections[name] = {}
        elif not line.startswith("#"):
            key, colon, value = line.partition(":")
            if colon:
                sections[name][key.strip()] = value.strip()
    whole = {name: keys["snaptime"] for name, keys in sections.items() if keys.get("snaptime", "").isdigit() and "snapstate" not in keys}
    return sections[""], tuple(Snapshot(name, int(made)) for name, made in whole.items())


def _storages(text: str) -> Iterator[tuple[str, str]]:
    """Source: /etc/pve/storage.cfg, `KIND: NAME` at the beginning of a line."""
    for line in text.splitlines():
        if match := re.fullmatch(r"([a-z]+): (\S+)\s*", line):
            yield match[2], match[1]
