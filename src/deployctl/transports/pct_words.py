"""How pct is called, and what its words mean: they are its only contract.

Source: docs/transports/pct.md and Proxmox's src/PVE/CLI/pct.pm.
"""

from __future__ import annotations

import re

from deployctl.errors import BusyError, DeployError, RefusedError, TransportError

PCT = ("/usr/bin/env", "LC_ALL=C.UTF-8", "/usr/sbin/pct")  # in another locale pct destroys every letter that is not ASCII

# what pct says; what it means, with {ct} and {host} filled in; what to do
WORDS: tuple[tuple[str, type[DeployError], str, str], ...] = (
    (
        r"container '\d+' not running|can only push files to a running|Failed to get init pid|Failed to attach",
        TransportError,
        "container {ct} is not running on {host}",
        "start it with `pct start {ct}`, or choose another target",
    ),
    (
        r"Configuration file '[^']*' does not exist",
        TransportError,
        "container {ct} does not exist on {host}",
        "mend `ct:` in the hosts file, or name the node that has it now: `cat /etc/pve/.vmlist` on {host} tells",
    ),
    (
        r"can't lock file .* got timeout|CT is locked",
        BusyError,
        "container {ct} is locked on {host}",
        "wait for the backup, migration or other `pct` that holds it, then run again",
    ),
    (
        r"Unable to load access control list: Connection refused|ipcc_send_rec.*Connection refused",
        TransportError,
        "the cluster file system of {host} is down, so pct does not work",
        "look at `systemctl status pve-cluster` on {host}",
    ),
    (
        r"snapshot feature is not available",
        RefusedError,
        "container {ct} can have no snapshot on {host}: its storage has none, or something is bound in",
        "move its volumes to a storage that has snapshots",
    ),
    (
        r"no quorum\?|unable to open file '/etc/pve/.* Permission denied",
        TransportError,
        "{host} has lost its cluster (no quorum), so nothing can be changed there",
        "look at `pvecm status` on {host}",
    ),
    (
        r"Unable to load access control list|please run as root",
        TransportError,
        "pct on {host} works for root only",
        "log in as root: `ssh: root@…` in the hosts file",
    ),
    (
        r"/usr/sbin/pct['’]?: (No such file|not found)|pct: (command )?not found",
        TransportError,
        "there is no pct on {host}, so it is no Proxmox node",
        "name the node in the hosts file, or leave `ct:` out",
    ),
)


def meaning(words: str, vmid: int, host: str, where: str) -> DeployError | None:
    """What pct's words mean, None for words that nobody has seen yet."""
    for pattern, kind, what, todo in WORDS:
        if re.search(pattern, words):
            return kind(what.format(ct=vmid, host=host), where=where, todo=todo.format(ct=vmid, host=host))
    return None
