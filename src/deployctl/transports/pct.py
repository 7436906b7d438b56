"""A Proxmox container: `pct exec` and `pct push`, carried by the host's transport."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from deployctl.errors import DeployError, TransportError
from deployctl.transports.base import Channel, exec, last_line, no_agent
from deployctl.transports.container import Container, Reach, nowhere
from deployctl.transports.pct_words import PCT, meaning

if TYPE_CHECKING:
    from deployctl.transports.ssh import Ssh

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

_FAILED_TO_EXEC = re.compile(r'Failed to exec "([^"]+)"')


class Pct:
    """The transport into container `vmid` of a host, whose connection it uses and does not close."""

    def __init__(self, host: Ssh, vmid: int, name: str, start: bool = False, reach: Reach = nowhere) -> None:
        self.name = name
        self.container = Container(host, vmid, name, start, reach)
        self._vmid = str(vmid)

    @property
    def _host(self) -> Ssh:
        return self.container.host

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
            raise self._why(stderr) or self._push_error(destination, done.status, stderr)

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

    def _why(self, stderr: str) -> DeployError | None:
        """What pct's words mean; why the container cannot be entered any more is better told by the host's own facts."""
        found = self._meaning(stderr)
        if isinstance(found, TransportError):
            try:
                self.container.admit()
            except TransportError as better:
                return better
        return found

    def _meaning(self, stderr: str) -> DeployError | None:
        return meaning(stderr, self.container.vmid, self._host.name, self.name)

    def _push_error(self, destination: str, status: int, stderr: str) -> TransportError:
        said = last_line(stderr) or f"it ended with {status}"
        return TransportError(f"pct push to '{destination}' failed: {said}", where=self.name)
