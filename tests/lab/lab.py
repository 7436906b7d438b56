"""The lab as tests see it: where its files are, what its host was asked to do, and its containers.

In a test:

    lab = Lab.current()
    with lab.settings(push_fault="exit0-message"):
        ...
    assert lab.exec(200, "cat", "/root/x").stdout == b"new"
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.lab import processes, sshd
from tests.lab.containers import CONTAINERS, Container
from tests.lab.errors import LabError
from tests.lab.host import NODE, Host

DEFAULT_DIRECTORY = "/var/tmp/deployctl-lab"
DEFAULT_SETTINGS: dict[str, Any] = {
    "delay": 0.0, "push_fault": None, "lock_wait": 10.0, "quorum": True, "pmxcfs": True, "keep_env": True, "ha": False,
}  # fmt: skip


class Lab:
    """A lab, up or not, by its directory ($DEPLOYCTL_LAB when none is given)."""

    def __init__(self, directory: Path | str | None = None) -> None:
        self.directory = Path(directory or os.environ.get("DEPLOYCTL_LAB") or DEFAULT_DIRECTORY).resolve()
        self.host = Host(self.directory)
        self.hosts_file = self.directory / "hosts.yaml"
        self.ssh_config = self.directory / "ssh_config"
        self.sshd_log = self.directory / "sshd/log"

    @classmethod
    def current(cls) -> Lab:
        """The lab that is up; raises LabError when none is, or when a part of it is missing."""
        lab = cls()
        down = [f"{part['name']} {part['state']}" for part in lab.parts() if not part["ok"]]
        if down:
            raise LabError(f"lab {lab.directory}: is not up ({', '.join(down)})", "run `tests/lab/lab up`")
        return lab

    # What it is

    @property
    def made(self) -> dict[str, Any]:
        """What `lab up` chose: {"port": int, "systemd": bool}; {} when the lab was never made."""
        try:
            found: dict[str, Any] = json.loads((self.directory / "lab.json").read_text())
        except (OSError, ValueError):
            return {}
        return found

    @property
    def port(self) -> int:
        """The loopback port of its sshd."""
        return int(self.made["port"])

    def containers(self) -> list[Container]:
        """Those that this lab has."""
        return [container for container in CONTAINERS if self.made.get("systemd") or not container.systemd]

    def parts(self) -> list[dict[str, Any]]:
        """Each part with its name, state, pid on this machine (None for none), and whether it is as `lab up` leaves it."""
        if not self.host.ready:
            return [{"name": "host", "state": "down", "pid": None, "ok": False}]
        keeper, server = self.host.keeper(), sshd.pid(self.host)
        parts: list[dict[str, Any]] = [
            {"name": "host", "state": "up", "pid": keeper and keeper.pid, "ok": True},
            {"name": "sshd", "state": "up" if server else "down", "pid": server, "port": self.port, "ok": bool(server)},
        ]
        for container in self.containers():
            state = self.state(container.vmid)
            pid = None if state == "STOPPED" else self.init_pid(container.vmid)
            as_made = state == ("RUNNING" if container.running else "STOPPED")
            about = {"name": container.name, "vmid": container.vmid, "about": container.about}
            parts.append({**about, "state": state, "pid": pid, "ok": as_made})
        return parts

    # What was asked of it

    def calls(self) -> list[dict[str, Any]]:
        """Every call of pct so far: {"argv": [...], "at": seconds since 1970, "pid": its pid on the lab's host}."""
        try:
            return [json.loads(line) for line in (self.directory / "calls.jsonl").read_text().splitlines()]
        except FileNotFoundError:
            return []

    def connections(self) -> int:
        """How many connections its sshd has taken so far."""
        return self.sshd_log.read_text(errors="replace").count("Connection from ") if self.sshd_log.exists() else 0

    # How it behaves

    @contextmanager
    def settings(self, **changes: Any) -> Iterator[None]:
        """Change settings.json for the time of the `with`; docs/lab.md says what each means."""
        if unknown := changes.keys() - DEFAULT_SETTINGS.keys():
            raise LabError(f"lab: no setting {sorted(unknown)}", f"choose from {sorted(DEFAULT_SETTINGS)}")
        file = self.directory / "settings.json"
        before = file.read_text()
        self._replace(file, json.dumps({**json.loads(before), **changes}))
        try:
            yield
        finally:
            self._replace(file, before)

    @contextmanager
    def config(self, ct: int, **lines: str) -> Iterator[None]:
        """Add lines to the container's Proxmox configuration for the time of the `with`, such as lock="backup"."""
        file = self.configuration(ct)
        before = file.read_text()
        self._replace(file, "".join(f"{key}: {value}\n" for key, value in lines.items()) + before)
        try:
            yield
        finally:
            self._replace(file, before)

    def configuration(self, ct: int, node: str = NODE, folder: str = "lxc") -> Path:
        """The container's file in /etc/pve."""
        return self.directory / f"pve/nodes/{node}/{folder}/{ct}.conf"

    @contextmanager
    def elsewhere(self, ct: int, node: str = "pve2", kind: str = "lxc") -> Iterator[None]:
        """Let the cluster say that another node has the container, or that its number is a virtual machine's (kind "qemu")."""
        here, there = self.configuration(ct), self.configuration(ct, node, {"lxc": "lxc", "qemu": "qemu-server"}[kind])
        listed = self.directory / "pve/.vmlist"
        before = listed.read_text()
        ids = json.loads(before)
        ids["ids"][str(ct)] |= {"node": node, "type": kind}
        there.parent.mkdir(parents=True, exist_ok=True)
        here.rename(there)
        self._replace(listed, json.dumps(ids) + "\n")
        try:
            yield
        finally:
            there.rename(here)
            self._replace(listed, before)

    @contextmanager
    def without_quorum(self, ct: int) -> Iterator[None]:
        """As if the node had lost its cluster: nobody may change the container's configuration."""
        file = self.configuration(ct)
        file.chmod(0o440)
        try:
            with self.settings(quorum=False):
                yield
        finally:
            file.chmod(0o640)

    @contextmanager
    def flock(self, ct: int) -> Iterator[None]:
        """Hold the lock that Proxmox holds while it works on the container's configuration, and `pct push` while it copies."""
        descriptor = os.open(self.directory / f"lock/pve-config-{ct}.lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    @staticmethod
    def _replace(file: Path, text: str) -> None:
        """A reader sees the old text or the new one."""
        new = file.with_name(f".{file.name}.{os.getpid()}")
        new.write_text(text)
        new.chmod(file.stat().st_mode & 0o7777)
        new.replace(file)

    # Its containers, past pct

    def exec(
        self, ct: int, *argv: str, input: bytes | None = None, check: bool = True, timeout: float = 60
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a program in a container, straight by lxc-attach: no call of pct, no connection of ssh.

        Raises CalledProcessError when `check` and it failed, TimeoutExpired after `timeout` seconds (it then runs on).
        """
        done = self.host.call("lxc-attach", "-n", str(ct), "--", *argv, input=input, check=False, timeout=timeout)
        if check and done.returncode:
            raise subprocess.CalledProcessError(done.returncode, done.args, done.stdout, done.stderr)
        return done

    def state(self, ct: int) -> str:
        """RUNNING, STOPPED, FROZEN, ... as LXC says."""
        return self.host.call("lxc-info", "-n", str(ct), "-sH").stdout.decode().strip()

    def init_pid(self, ct: int) -> int:
        """The pid, on this machine, of the container's PID 1; raises LabError when it does not run."""
        inner = self.host.call("lxc-info", "-n", str(ct), "-pH").stdout.strip()
        found = self.machine_pid(int(inner)) if inner else None
        if found is None:
            raise LabError(f"lab: container {ct} has no PID 1", f"start it with `Lab.start({ct})`")
        return found

    def machine_pid(self, pid: int) -> int | None:
        """The pid, on this machine, of a process by its pid on the lab's host (as in `calls()`); None when it is gone."""
        keeper = self.host.keeper()
        return processes.outer_pid(keeper.pid, pid) if keeper else None

    def start(self, ct: int) -> None:
        """Start a container that is stopped; returns when its PID 1 runs."""
        log = self.directory / f"lxc/{ct}/log"
        done = self.host.daemon("lxc-start", "-n", str(ct), "-d", "-o", str(log), "-l", "ERROR", check=False)
        if done.returncode:
            text = " / ".join(log.read_text(errors="replace").splitlines()[:3]) if log.exists() else done.stderr.decode(errors="replace")
            raise LabError(f"lab: container {ct}: lxc-start: status {done.returncode}: {text}", "see whether `lxc-checkconfig` is content")

    def stop(self, ct: int) -> None:
        """Stop a container at once (SIGKILL to all in it)."""
        self.host.call("lxc-stop", "-n", str(ct), "-k")

    def freeze(self, ct: int) -> None:
        """Freeze every process of a container, as a snapshot does."""
        self.host.call("lxc-freeze", "-n", str(ct))

    def thaw(self, ct: int) -> None:
        """Let a frozen container go on."""
        self.host.call("lxc-unfreeze", "-n", str(ct))
