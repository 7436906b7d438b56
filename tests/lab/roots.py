"""The containers' root directories: the machine's own programs, and nothing else that is the machine's.

A plain root is a small tree of the lab with an overlay over the machine's /usr in it: no copy, no download, and nothing of the
developer (/root, /home, /etc, /tmp, ...) is seen or changed in there. The systemd container's is an overlay over a debootstrap root.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.lab.containers import COUNT, SHIFT, Container
from tests.lab.host import Host

HERE = Path(__file__).parent
DIRECTORIES = {
    "": 0o755, "dev": 0o755, "proc": 0o555, "sys": 0o555, "run": 0o755, "usr": 0o755, "etc": 0o755, "mnt": 0o755, "opt": 0o755,
    "srv": 0o755, "var": 0o755, "var/lib": 0o755, "var/log": 0o755, "var/cache": 0o755, "home": 0o755, "home/trainer": 0o750,
    "root": 0o700, "tmp": 0o1777, "var/tmp": 0o1777,
}  # fmt: skip
# What programs of /usr need of /etc: the loader's cache, Debian's alternatives, su and its kind.
ETC = (
    "alternatives", "bash.bashrc", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "login.defs", "nsswitch.conf", "pam.d", "perl",
    "profile", "protocols", "python3", "python3.11", "python3.12", "python3.13", "security", "services", "skel", "localtime",
)  # fmt: skip
PASSWD = """\
root:x:0:0:root:/root:/bin/bash
daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin
www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin
trainer:x:1000:1000:trainer:/home/trainer:/bin/bash
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
"""
GROUP = "root:x:0:\ndaemon:x:1:\ntty:x:5:\nwww-data:x:33:\nusers:x:100:\ntrainer:x:1000:\nnogroup:x:65534:\n"


def make(container: Container, directory: Path) -> None:
    """Write the container's own files below `directory`: rootfs, and the directories of its overlay."""
    for name in ("rootfs", "upper", "work", "lower"):
        (directory / name).mkdir(parents=True)
    if container.systemd:
        return
    root = directory / "rootfs"
    for name, mode in DIRECTORIES.items():
        (root / name).mkdir(exist_ok=True)
        (root / name).chmod(mode)
    for link in Path("/").iterdir():
        if link.is_symlink() and os.readlink(link).startswith("usr/"):  # bin, sbin, lib, ...
            (root / link.name).symlink_to(os.readlink(link))
    os.chown(root / "home/trainer", 1000, 1000)
    shutil.copy(HERE / "init.pl", root / "init.pl")
    make_etc(container, root / "etc")
    if not container.python:
        hide_python(directory / "upper")
    if container.unprivileged:
        shift_owners(directory)


def make_etc(container: Container, etc: Path) -> None:
    """The few files of /etc that programs need, with accounts of the container's own."""
    for name in ETC:
        source = Path("/etc", name)
        if source.is_dir():
            shutil.copytree(source, etc / name, symlinks=True)
        elif source.exists():
            shutil.copy2(source, etc / name, follow_symlinks=False)
    texts = {
        "passwd": PASSWD,
        "group": GROUP,
        "shadow": "".join(f"{line.split(':')[0]}:*:19000:0:99999:7:::\n" for line in PASSWD.splitlines()),
        "hostname": f"{container.name}\n",
        "hosts": f"127.0.0.1 localhost\n127.0.1.1 {container.name}\n",
    }
    for name, text in texts.items():
        (etc / name).write_text(text)
    (etc / "shadow").chmod(0o640)


def hide_python(upper: Path) -> None:
    """Put an overlay's whiteout (a character device 0:0) over each python of /usr."""
    for folder in ("bin", "local/bin"):
        for program in Path("/usr", folder).glob("python*"):
            (upper / folder).mkdir(parents=True, exist_ok=True)
            os.mknod(upper / folder / program.name, 0o020000, os.makedev(0, 0))


def shift_owners(directory: Path) -> None:
    """Give the files to the unprivileged container's own ids."""
    for place, folders, files in os.walk(directory):
        for path in (place, *(os.path.join(place, name) for name in (*folders, *files))):
            found = os.lstat(path)
            if found.st_uid < SHIFT:
                os.lchown(path, found.st_uid + SHIFT, found.st_gid + SHIFT)
                if not os.path.islink(path):
                    os.chmod(path, found.st_mode & 0o7777)  # lchown drops setuid bits
    os.chown(directory, 0, 0)


def mount(host: Host, container: Container, systemd_root: Path) -> None:
    """Mount the overlay in the lab's mount namespace, where it vanishes with the lab's last process."""
    directory = host.base / f"lxc/{container.vmid}"
    target = directory / "rootfs" / ("" if container.systemd else "usr")
    if host.call("mountpoint", "-q", str(target), check=False).returncode == 0:
        return
    lower = systemd_root if container.systemd else Path("/usr")
    if container.unprivileged:
        shift = ("/usr/bin/python3", "-I", "-", str(lower), f"{directory}/lower", str(SHIFT), str(COUNT))
        host.call(*shift, input=(HERE / "idmap.py").read_bytes())
        lower = directory / "lower"
    host.overlay(lower, directory / "upper", directory / "work", target)
