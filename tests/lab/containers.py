"""The lab's containers: which there are, their LXC and Proxmox configuration, their start."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SHIFT, COUNT = 100_000, 65_536  # ids of an unprivileged container, as Proxmox gives them


@dataclass(frozen=True)
class Container:
    """One container and in what it differs from the plain kind."""

    vmid: int
    about: str
    unprivileged: bool = False
    running: bool = True
    python: bool = True
    systemd: bool = False
    snapshots: bool = True  # whether its storage has them

    @property
    def name(self) -> str:
        return f"ct{self.vmid}"


CONTAINERS = (
    Container(200, "privileged"),
    Container(201, "unprivileged", unprivileged=True),
    Container(202, "privileged, stopped", running=False),
    Container(203, "privileged, without a python3", python=False, snapshots=False),
    Container(210, "privileged, systemd as PID 1", systemd=True),
)

# What Proxmox drops for a privileged container, with the devices that LXC makes in a small /dev of its own.
LXC_COMMON = """\
lxc.net.0.type = empty
lxc.apparmor.profile = unconfined
lxc.cap.drop = mac_admin mac_override sys_time sys_module sys_rawio
lxc.autodev = 1
lxc.tty.max = 0
lxc.pty.max = 1024
lxc.environment = TERM=linux
lxc.mount.entry = tmpfs dev/shm tmpfs rw,nosuid,nodev,create=dir,mode=1777 0 0
"""

LXC_PLAIN = """\
lxc.mount.auto = proc:mixed sys:mixed
lxc.mount.entry = tmpfs run tmpfs rw,nosuid,nodev,mode=755 0 0
lxc.init.cmd = /usr/bin/perl /init.pl
"""

LXC_SYSTEMD = """\
lxc.mount.auto = proc:mixed sys:mixed cgroup:mixed
lxc.signal.halt = SIGRTMIN+3
"""

# What pvesm knows: a plain directory, on which a container has no snapshots, and a thin pool, on which it has.
STORAGES = """\
dir: local
\tpath /var/lib/vz
\tcontent iso,vztmpl,backup,rootdir

lvmthin: local-lvm
\tthinpool data
\tvgname pve
\tcontent rootdir,images
"""


def lxc_config(container: Container, directory: Path, cgroup: str) -> str:
    """The text of the container's LXC configuration; `directory` holds its rootfs."""
    vmid = container.vmid
    lines = [
        f"lxc.uts.name = {container.name}",
        f"lxc.rootfs.path = dir:{directory}/rootfs",
        f"lxc.cgroup.dir.monitor = {cgroup}/lxc.monitor/{vmid}",
        f"lxc.cgroup.dir.monitor.pivot = {cgroup}/lxc.pivot/{vmid}",
        f"lxc.cgroup.dir.container = {cgroup}/lxc/{vmid}",
        "lxc.cgroup.dir.container.inner = ns",
    ]
    if container.unprivileged:
        lines += [f"lxc.idmap = {kind} 0 {SHIFT} {COUNT}" for kind in "ug"]
    return LXC_COMMON + (LXC_SYSTEMD if container.systemd else LXC_PLAIN) + "".join(f"{line}\n" for line in lines)


def pve_config(container: Container) -> str:
    """The text of /etc/pve/lxc/ID.conf, as `pct create` leaves it."""
    unprivileged = "unprivileged: 1\n" if container.unprivileged else ""
    disk = f"vm-{container.vmid}-disk-0"
    volume = f"local-lvm:{disk}" if container.snapshots else f"local:{container.vmid}/{disk}.raw"
    return (
        f"arch: amd64\ncores: 2\nhostname: {container.name}\nmemory: 512\nostype: debian\n"
        f"rootfs: {volume},size=8G\nswap: 512\n{unprivileged}"
    )
