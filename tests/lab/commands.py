"""The command `lab`: up, down, status, env."""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab import cgroups, debian, furniture, processes, roots, sshd
from tests.lab.containers import Container
from tests.lab.errors import LabError
from tests.lab.host import machine_is_proxmox
from tests.lab.lab import Lab

NEEDED = {
    "lxc-start": "lxc", "sshd": "openssh-server", "ssh-keygen": "openssh-client", "unshare": "util-linux", "nsenter": "util-linux",
    "perl": "perl-base", "hostname": "hostname", "/usr/bin/python3": "python3",
}  # fmt: skip
HIDDEN = ("/root", "/run", "/etc", "/usr", "/proc", "/sys", "/dev")  # where the lab's host sees other files than this machine


def main(words: list[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    arguments = parser().parse_args(words)
    try:
        return int(arguments.command(arguments))
    except LabError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:  # what was begun has been taken down on the way here
        return 130


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(
        prog="lab",
        description="A Proxmox-like host on this machine, to test deployctl against: an sshd on loopback, a pct, LXC containers.",
        epilog="DEPLOYCTL_LAB is the lab's directory (default /var/tmp/deployctl-lab); labs in different directories do not meet.",
    )
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    for name, command, about in (
        ("up", up, "make the lab, or repair what is missing of it"),
        ("down", down, "end and remove everything that `up` made"),
        ("status", status, "one line a part; exit status 0 when all is up"),
        ("env", env, "lines for a shell: where deployctl finds the lab"),
    ):
        sub = commands.add_parser(name, help=about, description=about)
        sub.set_defaults(command=command)
        if name == "up":
            sub.add_argument("--no-systemd", action="store_true", help="leave container 210 (systemd, made by debootstrap) out")
        if name == "down":
            sub.add_argument("--purge", action="store_true", help=f"remove the debootstrap root in {debian.CACHE} too")
        if name == "status":
            sub.add_argument("--json", action="store_true", help="the same as JSON")
    return top


def check_machine(directory: Path) -> None:
    """Refuse a machine or a directory on which a lab could do harm or cannot work."""
    if machine_is_proxmox():
        raise LabError("lab: this is a Proxmox node (pct or /etc/pve is there)", "use a Debian machine of your own")
    if os.geteuid():
        raise LabError("lab: must run as root", "use sudo")
    missing = {package for program, package in NEEDED.items() if not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin")}
    if missing:
        raise LabError(f"lab: programs are missing of {', '.join(sorted(missing))}", f"apt install {' '.join(sorted(missing))}")
    if any(character in str(directory) for character in ":, \t\n\\'\""):
        raise LabError(f"DEPLOYCTL_LAB: '{directory}' has a character that a mount option cannot have", "choose a plain name")
    if any(directory.is_relative_to(hidden) for hidden in HIDDEN):
        raise LabError(f"DEPLOYCTL_LAB: '{directory}' would be hidden in the lab", "choose a directory below /var/tmp or /tmp")
    if directory.exists() and any(directory.iterdir()) and not (directory / "lab.json").exists():
        raise LabError(f"DEPLOYCTL_LAB: '{directory}' holds other files", "choose a directory of the lab's own")


@contextmanager
def alone(directory: Path) -> Iterator[None]:
    """Hold the lab's directory: one `up` or `down` at a time."""
    while True:
        directory.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(directory, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if directory.exists() and os.path.samestat(os.fstat(descriptor), directory.stat()):
            break
        os.close(descriptor)  # a `down` removed it while we waited
    try:
        yield
    finally:
        os.close(descriptor)


def up(arguments: argparse.Namespace) -> int:
    """Make or repair the lab; one that this call began and could not finish is taken down again."""
    lab = Lab()
    check_machine(lab.directory)
    with alone(lab.directory):
        fresh = not lab.made
        try:
            raise_parts(lab, systemd=not arguments.no_systemd)
        except BaseException:
            if fresh:
                tear_down(lab)
            raise
    return status(argparse.Namespace(json=False))


def raise_parts(lab: Lab, systemd: bool) -> None:
    """Bring up, in their order, the parts that are not up."""
    systemd_root = debian.make() if systemd else debian.ROOT
    port = lab.made.get("port") or sshd.free_port(20_000 + int(lab.host.unique[-4:], 16) % 20_000)
    furniture.write(lab, port, systemd=systemd or bool(lab.made.get("systemd")))
    if not lab.host.ready:
        end_processes(lab)
        lab.host.start()
    furniture.install_pct(lab)
    if sshd.pid(lab.host) is None:
        port = sshd.free_port(port)  # somebody may have taken it since
        furniture.write(lab, port, systemd=bool(lab.made["systemd"]))
        sshd.start(lab.host, port)
    for container in lab.containers():
        raise_container(lab, container, systemd_root)


def raise_container(lab: Lab, container: Container, systemd_root: Path) -> None:
    """Make the container if it is new, and bring it into the state that it has in the table."""
    directory = lab.directory / f"lxc/{container.vmid}"
    if not (directory / "config").exists():
        shutil.rmtree(directory, ignore_errors=True)
        roots.make(container, directory)
        furniture.write_container(lab, container)
    roots.mount(lab.host, container, systemd_root)
    state = lab.state(container.vmid)
    if state == "FROZEN":
        lab.thaw(container.vmid)
    if container.running and state == "STOPPED":
        lab.start(container.vmid)
    if not container.running and state != "STOPPED":
        lab.stop(container.vmid)
    if container.systemd:
        words = ("systemctl", "is-system-running")
        ready = (b"running", b"degraded")
        processes.wait_for(
            f"container {container.vmid}: systemd",
            lambda: lab.exec(container.vmid, *words, check=False).stdout.strip() in ready,
            30,
            f"read {directory}/log",
        )


def down(arguments: argparse.Namespace) -> int:
    """End and remove everything; there may be a half of it, or nothing."""
    lab = Lab()
    if lab.made or lab.host.keepers():
        with alone(lab.directory):
            tear_down(lab)
        print(f"lab {lab.directory}: is down")
    else:
        print(f"lab {lab.directory}: was not up")
    if arguments.purge:
        debian.purge()
    return 0


def tear_down(lab: Lab) -> None:
    """Processes first, since they hold the mounts and the cgroups; then the files."""
    end_processes(lab)
    mounted = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    if inside := [place for place in mounted if Path(place).is_relative_to(lab.directory)]:
        raise LabError(f"lab: {', '.join(inside)}: is a mount that the lab did not make", "unmount it, then run `lab down` again")
    shutil.rmtree(lab.directory)


def end_processes(lab: Lab) -> None:
    """End every process of the lab and remove its cgroups, also those that a crash left."""
    cgroups.thaw(lab.host.unique)
    lab.host.stop()
    cgroups.remove(lab.host.unique)


def status(arguments: argparse.Namespace) -> int:
    """Print the parts."""
    lab = Lab()
    parts = lab.parts()
    good = all(part["ok"] for part in parts)
    if arguments.json:
        print(json.dumps({"directory": str(lab.directory), "up": good, "parts": parts}))
        return 0 if good else 1
    print(f"lab {lab.directory}: {'is up' if good else 'is not up; do: run `lab up`'}")
    for part in parts:
        pid = f"pid {part['pid']}" if part["pid"] else ""
        port = f"127.0.0.1:{part['port']}" if "port" in part else part.get("about", "")
        print(f"  {part['name']:<6} {part['state']:<8} {pid:<12} {port}".rstrip())
    return 0 if good else 1


def env(_arguments: argparse.Namespace) -> int:
    """Print lines for `eval`."""
    lab = Lab()
    print(f"export DEPLOYCTL_LAB={lab.directory}")
    print(f"export DEPLOYCTL_HOSTS={lab.hosts_file}")
    print("# by hand:")
    print(f"#   ssh -F {lab.ssh_config} pve1 pct list")
    print(f"#   ssh -F {lab.ssh_config} pve1 'pct exec 200 -- hostname'")
    print(f"#   tail -f {lab.directory}/calls.jsonl   # each call of pct")
    return 0
