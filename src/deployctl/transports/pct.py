"""A Proxmox container: `pct exec` and `pct push`, carried by the host's transport. Its words on stderr are its only contract.

Source: docs/transports/pct.md and Proxmox's src/PVE/CLI/pct.pm.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from deployctl.errors import BusyError, DeployError, TransportError
from deployctl.transports.base import Channel, exec, last_line, no_agent

if TYPE_CHECKING:
    from deployctl.transports.ssh import Ssh

PCT = ("/usr/bin/env", "LC_ALL=C.UTF-8", "/usr/sbin/pct")  # in another locale pct destroys every letter that is not ASCII
PUSH_WITHIN = 600.0  # seconds
# What is on stderr before the mark is login noise. The host itself removes what was staged there, also when we are gone by then, and what
# a killed one of us left a day ago.
_PUSH = (
    "/bin/sh",
    "-c",
    'echo "$0" >&2; directory=$1; shift; "$@"; status=$?; exec 2>/dev/null; rm -rf -- "$directory"; '
    'find /tmp -maxdepth 1 -name "deployctl-????????????????" -user "$(id -un)" -mmin +1440 -exec rm -rf -- {} +; exit $status',
)
_WAITED = re.compile(r"trying to acquire lock\.\.\.(\s*OK\b)?")

# what pct says; what it means, with {ct} and {host} filled in; what to do
_WORDS: tuple[tuple[str, type[DeployError], str, str], ...] = (
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
        r"Unable to load access control list|please run as root",
        TransportError,
        "pct on {host} works for root only",
        "log in as root: `ssh: root@…` in the hosts file",
    ),
    (
        r"/usr/sbin/pct['’]?: No such file|pct: (command )?not found",
        TransportError,
        "there is no pct on {host}, so it is no Proxmox node",
        "name the node in the hosts file, or leave `ct:` out",
    ),
)
_FAILED_TO_EXEC = re.compile(r'Failed to exec "([^"]+)"')


class Pct:
    """The transport into container `vmid` of a host, whose connection it uses and does not close."""

    def __init__(self, host: Ssh, vmid: int, name: str) -> None:
        self.name = name
        self._host = host
        self._vmid = str(vmid)

    def open(self, argv: Sequence[str]) -> Channel:
        """Starts a program in the container, as its root, in an unknown directory. Raises TransportError."""
        return self._host.open([*PCT, "exec", self._vmid, "--", *argv])

    def put(self, source: Path, destination: str, progress: Callable[[int], None] | None = None) -> None:
        """Copies a file over the host to a private one (0600) in the container. Raises TransportError or BusyError.

        `destination` must be a new name: pct writes an existing file over, in place. pct does not notice a short copy: whoever
        reads the file compares its size.
        """
        directory = self._host.private_directory()
        staged = f"{directory}/bundle"
        mark = f"deployctl-push {secrets.token_hex(8)}"
        self._host.put(source, staged, progress)
        argv = [*_PUSH, mark, directory, *PCT, "push", self._vmid, staged, destination, "--perms", "600"]
        done = exec(self._host, argv, timeout=PUSH_WITHIN)
        self._host.release(directory)
        _, _, stderr = done.stderr.rpartition(f"{mark}\n")
        if done.status or _WAITED.sub("", stderr).strip():  # pct ends with 0 when the copy failed
            raise self._meaning(stderr) or self._push_error(destination, done.status, stderr)

    def explain(self, status: int, stderr: str, noise: str = "") -> DeployError:
        """The reason why an agent did not answer, from pct's own words."""
        place = f"container {self._vmid}"
        meaning = self._meaning(stderr)
        if meaning:
            return meaning
        if missing := _FAILED_TO_EXEC.search(stderr):
            return TransportError(f"no {missing[1]} in {place}", where=self.name, todo="install it there, or choose another target")
        if status == 137 and not stderr.strip():
            what = f"{place} was stopped meanwhile, or the agent in it was killed"
            return TransportError(what, where=self.name, todo=f"look with `pct status {self._vmid}` on {self._host.name}")
        return no_agent(place, self.name, status, stderr, noise)

    def close(self) -> None:
        """Holds nothing: the connection is the host's."""

    def _meaning(self, stderr: str) -> DeployError | None:
        names = {"ct": self._vmid, "host": self._host.name}
        for words, kind, what, todo in _WORDS:
            if re.search(words, stderr):
                return kind(what.format(**names), where=self.name, todo=todo.format(**names))
        return None

    def _push_error(self, destination: str, status: int, stderr: str) -> TransportError:
        said = last_line(stderr) or f"it ended with {status}"
        return TransportError(f"pct push to '{destination}' failed: {said}", where=self.name)
