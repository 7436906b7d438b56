"""A container as a thing of its host: whether it may be entered, its start, its snapshots. Enters it only to wait for its start.

It never unlocks, never thaws and never restarts one: the message has the very command that a person would type.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from deployctl.errors import BusyError, DeployError, GoneError, TransportError
from deployctl.transports import proxmox
from deployctl.transports.base import Done, exec, last_line
from deployctl.transports.pct_words import PCT, meaning
from deployctl.transports.proxmox import Facts

if TYPE_CHECKING:
    from deployctl.transports.ssh import Ssh

Say = Callable[..., None]  # say("busy", why=…): an event of the run
Reach = Callable[[str], "Ssh | None"]  # the host that a node is, where the hosts file has it
LOCK_WAIT = 10.0  # seconds that a run waits for a locked container where nobody said how long
LOOK = 0.5  # seconds between two looks
START_WITHIN, BOOT_WITHIN, ACT_WITHIN = 120.0, 60.0, 600.0  # seconds
# Without systemd a container can be used as soon as its PID 1 runs.
_BOOTED = f"[ ! -d /run/systemd/system ] || timeout {BOOT_WITHIN:.0f} systemctl is-system-running --wait"
LOCKS = {"backup": "a backup", "migrate": "a migration", "snapshot": "a snapshot", "snapshot-delete": "the removal of a snapshot"}


def nowhere(_node: str) -> None:
    """Knows no other host."""


class Container:
    """Container `vmid` of `host`, which is another one after `admit` has followed it there."""

    def __init__(self, host: Ssh, vmid: int, name: str, start: bool = False, reach: Reach = nowhere) -> None:
        self.host, self.vmid, self.name = host, vmid, name
        self._start, self._reach = start, reach

    def facts(self) -> Facts:
        """What the host says of it now. Raises TransportError when it says nothing."""
        return proxmox.facts(self.host, self.vmid)

    def admit(self) -> Facts:
        """Looks whether it may be entered as it is now. Raises TransportError."""
        found = self._here(None)
        self._must_run(found)
        return found

    def ready(self, patience: float | None, say: Say) -> Facts:
        """The same for a run: waits for a lock or a thaw, and starts it where the target says so. Raises TransportError or BusyError."""
        found = self._free(self._here(say), patience, say)
        if self._start and found.state == "STOPPED":
            found = self._started(found, say)
        self._must_run(found)
        return found

    def still(self, before: Facts, patience: float | None, say: Say) -> None:
        """Looks once more, right before the cut-over. Raises TransportError or BusyError: nothing was changed yet."""
        found = self._free(self.facts(), patience, say)
        if gone := self._gone(before, found):
            raise gone
        self._must_run(found)

    def frozen(self) -> bool:
        """Whether nothing in it can speak now, and will go on as if nothing had been; False when nobody says."""
        try:
            return self.facts().state == "FROZEN"
        except DeployError:
            return False

    def gone(self, before: Facts) -> GoneError | None:
        """What happened to it since `before`: it was stopped, restarted or moved. None for nothing of these, or when nobody says."""
        try:
            return self._gone(before, self.facts())
        except DeployError:
            return None

    def _gone(self, before: Facts, now: Facts) -> GoneError | None:
        what = f"container {self.vmid} "
        if now.owner != before.owner:
            todo = f"let the target name the host of node {now.owner}" if now.owner else "mend `ct:` in the hosts file"
            return GoneError(what + self._place(now.owner), where=self.name, todo=todo)
        if now.state == "STOPPED":
            by = f" by {LOCKS.get(now.lock, now.lock)}" if now.lock else ""
            return GoneError(f"{what}was stopped{by}", where=self.name, todo=f"start it with `pct start {self.vmid}` on {self.host.name}")
        return GoneError(f"{what}was restarted", where=self.name, todo="see what runs there now") if now.init != before.init else None

    def snapshot(self, name: str, description: str) -> None:
        """Makes a snapshot; a running container is frozen for a moment. Raises RefusedError where there can be none, else DeployError."""
        self._must("snapshot", name, "--description", description)

    def snapshots(self) -> tuple[str, ...]:
        """The names of its snapshots, the oldest first. Raises TransportError."""
        return tuple(snapshot.name for snapshot in sorted(self.facts().snapshots, key=lambda snapshot: snapshot.made))

    def drop(self, snapshot: str) -> None:
        """Removes a snapshot. Raises DeployError."""
        self._must("delsnapshot", snapshot)

    def _must(self, command: str, *rest: str) -> None:
        done = self.act(command, str(self.vmid), *rest)
        if done.status:
            raise self.failure(done, f"{command} {self.vmid} {rest[0]}")

    def act(self, *words: str, within: float = ACT_WITHIN) -> Done:
        """Runs a command of pct on it; `words` are what follows `pct`. Its failure is the caller's to judge."""
        return exec(self.host, [*PCT, *words], timeout=within)

    def failure(self, done: Done, otherwise: str) -> DeployError:
        """Why pct failed, from its own words."""
        found = meaning(done.stderr, self.vmid, self.host.name, self.name)
        said = last_line(done.stderr) or last_line(done.stdout.decode("utf-8", "replace")) or f"it ended with {done.status}"
        todo = f"try it on {self.host.name}: `pct {otherwise}`"
        return found or TransportError(f"pct {otherwise} failed on {self.host.name}: {said}", where=self.name, todo=todo)

    def _here(self, say: Say | None) -> Facts:
        """The facts of a container that exists and is no template, on the node that has it."""
        found = self.facts()
        if found.owner not in (None, found.node) and found.kind == "lxc" and (other := self._reach(str(found.owner))):
            if say:
                say("moved", container=self.vmid, node=found.owner, host=other.name)
            self.host, found = other, proxmox.facts(other, self.vmid)
        if found.said and (refused := meaning(found.said, self.vmid, self.host.name, self.name)):
            raise refused
        if found.owner is None or (found.owner == found.node and not found.config and found.kind != "qemu"):
            todo = f"mend `ct:` in the hosts file; `cat /etc/pve/.vmlist` on {self.host.name} tells which there are"
            raise self._no(f"container {self.vmid} does not exist on {self.host.name}", todo)
        if found.kind == "qemu":
            todo = "mend `ct:` in the hosts file; a virtual machine with an sshd is a host of its own"
            raise self._no(f"{self.vmid} is a virtual machine on node {found.owner}, not a container", todo)
        if found.owner != found.node:
            todo = f"write a host named '{found.owner}' into the hosts file, and it is followed there, or name it in the target"
            raise self._no(f"container {self.vmid} {self._place(found.owner)}, not on {self.host.name}", todo)
        if found.template:
            raise self._no(f"container {self.vmid} is a template on {self.host.name}", "choose a container that was cloned from it")
        return found

    def _must_run(self, found: Facts) -> None:
        if found.state == "FROZEN":
            todo = f"look who froze it; it goes on with `lxc-unfreeze -n {self.vmid}` on {self.host.name}"
            raise self._no(f"container {self.vmid} is frozen on {self.host.name}, so nothing in it can answer", todo)
        if found.state not in ("RUNNING", ""):
            state = "not running" if found.state == "STOPPED" else found.state.lower()
            todo = f"start it with `pct start {self.vmid}`, or choose another target"
            if self._start:
                todo = "a run starts it, since the target says `start: true`"
            raise self._no(f"container {self.vmid} is {state} on {self.host.name}", todo)

    def _free(self, found: Facts, patience: float | None, say: Say) -> Facts:
        """Waits until nothing works on it, and until it is thawed, which a backup's freeze is soon. Raises BusyError."""
        bound = LOCK_WAIT if patience is None else patience
        until, told = time.monotonic() + bound, False
        while found.lock or found.state == "FROZEN":
            busy = self.busy(found)
            if time.monotonic() >= until:
                if found.lock:
                    raise busy
                return found
            if not told:
                say("busy", why=busy.what, patience=bound)
                told = True
            time.sleep(min(LOOK, max(0.0, until - time.monotonic())))
            found = self.facts()
        return found

    def busy(self, found: Facts) -> BusyError:
        """What is said of a container that is locked, or that is frozen for a moment."""
        held = f"locked on {self.host.name} by {LOCKS.get(found.lock, 'other work')} (lock: {found.lock})" if found.lock else "frozen"
        todo = f"wait for its end, then run again; if nothing works on it any more, a person may `pct unlock {self.vmid}`"
        return BusyError(f"container {self.vmid} is {held}", where=self.name, todo=todo)

    def _started(self, found: Facts, say: Say) -> Facts:
        """Starts it and waits until it can be used; under HA, pct only asks for it."""
        began = time.monotonic()
        done = self.act("start", str(self.vmid), within=START_WITHIN)
        if done.status:
            raise self.failure(done, f"start {self.vmid}")
        while found.state != "RUNNING" and time.monotonic() < began + START_WITHIN:
            found = self.facts()
            time.sleep(0 if found.state == "RUNNING" else LOOK)
        if found.state == "RUNNING":
            exec(self.host, [*PCT, "exec", str(self.vmid), "--", "/bin/sh", "-c", _BOOTED], timeout=BOOT_WITHIN + 30)
            say("started", container=self.vmid, seconds=round(time.monotonic() - began, 3))
        return found

    @staticmethod
    def _place(owner: str | None) -> str:
        return f"is on node {owner} now" if owner else "does not exist any more"

    def _no(self, what: str, todo: str) -> TransportError:
        return TransportError(what, where=self.name, todo=todo)


