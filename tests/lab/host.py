"""The lab's host: one process that is PID 1 of a pid, mount and host name namespace, in which everything of the lab lives.

So the lab's `/usr/sbin/pct`, `/etc/pve` and empty `/root` are there for its sshd and for nobody else, and when that one process
dies the kernel ends every process and every mount of the lab with it.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

from tests.lab import cgroups, processes
from tests.lab.errors import LabError
from tests.lab.processes import Process

NODE = "pve1"
# What a program on the host gets; not the environment of whoever calls the lab.
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}


class Host:
    """The host of the lab in `directory`; it may be down."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.title = ["init", "deployctl-lab", str(directory)]

    def keepers(self) -> list[Process]:
        """Every PID 1 of this lab that is alive, found by its title; more than one is left over from a crash."""
        found = []
        for pid in processes.pids():
            if " ".join(processes.command_line(pid)) == " ".join(self.title) and processes.namespace_pids(pid)[-1:] == [1]:
                found.append(processes.look(pid))
        return [process for process in found if process]

    def keeper(self) -> Process | None:
        """PID 1 of the lab. Its pid is remembered in a file, so that a look does not go through all of /proc."""
        try:
            pid, started = map(int, (self.directory / "keeper").read_text().split())
        except (OSError, ValueError):
            return None
        return Process(pid, started) if Process(pid, started).alive else None

    def start(self) -> None:
        """Start PID 1 in namespaces of its own and furnish them."""
        words = ["unshare", "--mount", "--propagation", "private", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
        words += ["perl", str(self.directory / "init.pl"), *self.title[1:]]
        none = subprocess.DEVNULL
        subprocess.Popen(cgroups.at_root(*words), cwd="/", env=ENVIRONMENT, start_new_session=True, stdin=none, stdout=none, stderr=none)
        processes.wait_for("lab: start of its PID 1", self.keepers, 10, "see whether `unshare --mount --pid --fork true` works here")
        keeper = self.keepers()[0]
        (self.directory / "keeper").write_text(f"{keeper.pid} {keeper.started}\n")
        self.furnish()

    def furnish(self) -> None:
        """Mount what makes this machine look like a Proxmox host, in the lab's mount namespace only."""
        lab = self.base
        script = f"""
            hostname {NODE}
            mount -n -t tmpfs -o mode=755 tmpfs /run
            mkdir -p /run/sshd /run/lock /run/lxc {lab}
            mount --bind {self.directory} {lab}
            ln -s {lab} /run/deployctl-lab
            ln -s {lab}/lock /run/lock/lxc
            mount --bind {lab}/host/root /root
            mount -t overlay overlay -o lowerdir=/etc,upperdir={lab}/host/etc,workdir={lab}/host/etc.work /etc
            mount -t overlay overlay -o lowerdir=/usr/sbin,upperdir={lab}/host/sbin,workdir={lab}/host/sbin.work /usr/sbin
            mount --bind {lab}/pve /etc/pve
            touch /run/lab-ready
        """
        self.call("sh", "-e", input=script.encode())

    @property
    def ready(self) -> bool:
        """Whether PID 1 lives and its namespaces are furnished to the end."""
        return self.keeper() is not None and self.call("test", "-e", "/run/lab-ready", check=False).returncode == 0

    @property
    def base(self) -> Path:
        """The lab's directory as the lab's host sees it: short, as it is in names of abstract sockets, and open to everyone.

        The directory itself may lie in one that an unprivileged container's root cannot pass through.
        """
        return Path("/run", self.unique)

    @property
    def unique(self) -> str:
        """A name that no other lab of this machine has."""
        return "deployctl-lab-" + hashlib.sha256(str(self.directory).encode()).hexdigest()[:8]

    def inside(self, *argv: str) -> list[str]:
        """The argv that runs `argv` on the lab's host."""
        keeper = self.keeper()
        if keeper is None:
            raise LabError(f"lab {self.directory}: is not up", "run `tests/lab/lab up`")
        return ["nsenter", "-t", str(keeper.pid), "-m", "-u", "-p", "--", *argv]

    def call(self, *argv: str, input: bytes | None = None, check: bool = True, timeout: float = 60) -> subprocess.CompletedProcess[bytes]:
        """Run a program on the lab's host; raises LabError when `check` and it failed, TimeoutExpired after `timeout` seconds."""
        words = self.inside(*argv)
        stdin = subprocess.DEVNULL if input is None else None
        done = subprocess.run(words, input=input, stdin=stdin, env=ENVIRONMENT, capture_output=True, timeout=timeout)
        if check and done.returncode:
            text = done.stderr.decode(errors="replace").strip() or done.stdout.decode(errors="replace").strip()
            raise LabError(f"lab: {' '.join(argv)}: status {done.returncode}: {text}", "read the text; `lab down` clears up")
        return done

    def daemon(self, *argv: str, check: bool = True) -> subprocess.CompletedProcess[bytes]:
        """Run a program on the lab's host that goes into the background, outside of the caller's cgroups."""
        return self.call(*cgroups.at_root(*argv), check=check)

    def overlay(self, lower: Path, upper: Path, work: Path, target: Path) -> None:
        """Mount an overlay."""
        options = f"lowerdir={lower},upperdir={upper},workdir={work}"
        done = self.call("mount", "-t", "overlay", "overlay", "-o", options, str(target), check=False)
        if done.returncode:
            todo = "set DEPLOYCTL_LAB to a directory on ext4, xfs, btrfs or tmpfs (an overlay cannot lie on an overlay)"
            raise LabError(f"lab: overlay on {target}: {done.stderr.decode(errors='replace').strip()}", todo)

    def stop(self) -> None:
        """End PID 1, and with it every process and mount of the lab."""
        keepers = self.keepers()
        victims = keepers + [process for keeper in keepers for process in processes.parents(keeper, "unshare")]
        for keeper in keepers:
            keeper.kill()
        todo = "a process in an unkillable wait (fuse, NFS) holds it: end that, then run `lab down` again"
        gone = f"lab {self.directory}: end of its processes"
        processes.wait_for(gone, lambda: not any(victim.alive for victim in victims), 20, todo)


def machine_is_proxmox() -> bool:
    """Whether this machine is a real Proxmox node (or the inside of a lab)."""
    signs = ("/usr/sbin/pct", "/etc/pve/.members", "/etc/pve/.vmlist", "/var/lib/dpkg/info/pve-manager.list")
    return any(os.path.lexists(sign) for sign in signs)
