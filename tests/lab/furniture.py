"""The files of a lab's directory that do not depend on a running process: accounts, /etc/pve, settings, hosts.yaml, pct."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from pathlib import Path

from tests.lab import sshd
from tests.lab.containers import COUNT, SHIFT, STORAGES, Container, lxc_config, pve_config
from tests.lab.host import NODE
from tests.lab.lab import DEFAULT_SETTINGS, Lab

HERE = Path(__file__).parent
HOSTS = """\
# Made by `lab up`.
hosts:
  {node}: {{ssh: {node}, ssh_config: {lab}/ssh_config}}
targets:
  ct200: {{host: {node}, ct: 200}}  # privileged
  ct201: {{host: {node}, ct: 201}}  # unprivileged
  ct202: {{host: {node}, ct: 202}}  # stopped
  ct203: {{host: {node}, ct: 203}}  # without a python3
  ct210: {{host: {node}, ct: 210}}  # systemd
  ct999: {{host: {node}, ct: 999}}  # does not exist
  pve: {{host: {node}}}
  here: {{local: true}}
groups:
  trainers: [ct200, ct201]
"""


def write(lab: Lab, port: int, systemd: bool) -> None:
    """Write all of it; what a test or a person may have changed since (settings, calls) is kept."""
    top = lab.directory
    top.chmod(0o755)  # an unprivileged container's root passes through it, by way of the bind mount on the lab's host
    for name in ("host/root", "host/etc/pve", "host/etc/lxc", "host/etc.work", "host/sbin", "host/sbin.work", "lock", "lxc"):
        (top / name).mkdir(parents=True, exist_ok=True)
    (top / "host/root").chmod(0o700)
    (top / "lab.json").write_text(json.dumps({"port": port, "systemd": systemd}) + "\n")
    if not (top / "settings.json").exists():
        (top / "settings.json").write_text(json.dumps(DEFAULT_SETTINGS) + "\n")
    shutil.copy(HERE / "init.pl", top / "init.pl")
    lab.hosts_file.write_text(HOSTS.format(node=NODE, lab=top))
    sshd.configure(top, port)
    write_pve(lab)
    if not lab.host.ready:  # an overlay's upper directory is not changed while it is mounted
        write_host_etc(lab)


def write_host_etc(lab: Lab) -> None:
    """What the lab's host has in /etc other than this machine: root can log in by key, LXC looks in the lab, ids for container 201."""
    etc = lab.directory / "host/etc"
    accounts = Path("/etc/passwd").read_text().splitlines()
    others = "".join(f"{line}\n" for line in accounts if not line.startswith("root:"))
    (etc / "passwd").write_text("root:x:0:0:root:/root:/bin/bash\n" + others)
    (etc / "shadow").write_text("root:*:19000:0:99999:7:::\n")
    (etc / "shadow").chmod(0o640)
    (etc / "hostname").write_text(f"{NODE}\n")
    (etc / "hosts").write_text(f"127.0.0.1 localhost\n127.0.1.1 {NODE}\n")
    (etc / "lxc/lxc.conf").write_text(f"lxc.lxcpath = {lab.host.base}/lxc\n")
    for name in ("subuid", "subgid"):
        (etc / name).write_text(f"root:{SHIFT}:{COUNT}\n")


def write_pve(lab: Lab) -> None:
    """/etc/pve as pmxcfs shows it. Source: pct-contract.md, section 8."""
    pve = lab.directory / "pve"
    (pve / "nodes" / NODE / "lxc").mkdir(parents=True, exist_ok=True)
    for name, target in (("local", f"nodes/{NODE}"), ("lxc", f"nodes/{NODE}/lxc")):
        if not (pve / name).is_symlink():
            (pve / name).symlink_to(target)
    ids = {str(one.vmid): {"node": NODE, "type": "lxc", "version": 4} for one in lab.containers()}
    (pve / ".vmlist").write_text(json.dumps({"version": 12, "ids": ids}) + "\n")
    (pve / ".vmlist").chmod(0o440)
    (pve / "storage.cfg").write_text(STORAGES)
    (pve / ".members").write_text(json.dumps({"nodename": NODE, "version": 0}) + "\n")


def write_container(lab: Lab, container: Container) -> None:
    """The container's two configurations; the LXC one last, since it says that the container is whole."""
    place = f"lxc/{container.vmid}"
    lab.configuration(container.vmid).write_text(pve_config(container))
    lab.configuration(container.vmid).chmod(0o640)
    (lab.directory / place / "config").write_text(lxc_config(container, lab.host.base / place, lab.host.unique))


def install_pct(lab: Lab) -> None:
    """Pack the stand-in into one executable file, since the checkout may not be visible on the lab's host, and put it there."""
    packed = io.BytesIO(b"#!/usr/bin/python3 -I\n")
    packed.seek(0, io.SEEK_END)
    with zipfile.ZipFile(packed, "a") as archive:
        for source in sorted((HERE / "pct").glob("*.py")):
            archive.writestr(f"pct/{source.name}", source.read_text())
        archive.writestr("__main__.py", "from pct.main import main\n\nmain()\n")
    script = "cat > /usr/sbin/.pct; chmod 755 /usr/sbin/.pct; mv /usr/sbin/.pct /usr/sbin/pct"
    lab.host.call("sh", "-ec", script, input=packed.getvalue())
