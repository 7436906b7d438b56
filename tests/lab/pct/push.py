"""`pct push` and `pull` (contract 5): under the container's lock, a forked worker copies one file into or out of its mount namespace.

The exit status is 0 whatever the worker did; write errors are not noticed; an existing file is truncated in place.
"""

import ctypes
import grp
import os
import pwd
import re
import stat
from collections.abc import Callable
from contextlib import suppress

from . import config, machine
from .machine import Die
from .words import Parsed
from .worker import Failed, lock, work

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
BUFFER = 2 << 20


def push(vmid: int, parsed: Parsed, settings: machine.Settings) -> int:
    """The command; returns the exit status."""
    lock(vmid, settings.lock_wait)
    if not machine.running(vmid):
        raise Die("can only push files to a running CT")
    unprivileged = config.read(vmid).keys.get("unprivileged") == "1"
    pid = machine.init_pid(vmid)
    return work(lambda: copy(parsed, pid, unprivileged, settings.push_fault), failure=0)


def pull(vmid: int, parsed: Parsed, settings: machine.Settings) -> int:
    """The command; returns the exit status."""
    lock(vmid, settings.lock_wait)
    if not machine.running(vmid):
        raise Die("can only pull files from a running VM at /usr/share/perl5/PVE/CLI/pct.pm line 500.")
    pid = machine.init_pid(vmid)
    return work(lambda: fetch(parsed, pid), failure=0)


def copy(parsed: Parsed, pid: int, unprivileged: bool, fault: str | None) -> None:
    """Open the source here and the destination inside, then copy."""
    file, destination = parsed.arguments["file"], parsed.arguments["destination"]
    try:
        source = os.open(file, os.O_RDONLY)
    except OSError:
        raise Failed(f"failed to open {file} for reading") from None
    enter(pid, unprivileged)
    if fault == "exit0-message":
        raise Failed(f"failed to create file: {destination}: Permission denied")
    target = give(destination, parsed)
    pour(source, target, fault)


def fetch(parsed: Parsed, pid: int) -> None:
    """Make the local file first, then enter the container's mount namespace, as the node's root, and open the source there."""
    target = give(parsed.arguments["destination"], parsed)
    enter(pid, unprivileged=False)
    path = parsed.arguments["path"]
    try:
        source = os.open(path, os.O_RDONLY)
    except OSError as error:
        raise Failed(f"failed to open {path}: {error.strerror}") from None
    pour(source, target, None)


def give(destination: str, parsed: Parsed) -> int:
    """Open the destination with the mode and the owner that were asked for."""
    mode = parse_mode(parsed.options.get("perms"))
    user = identity(parsed.options.get("user"), "uid", lambda name: pwd.getpwnam(name).pw_uid)
    group = identity(parsed.options.get("group"), "gid", lambda name: grp.getgrnam(name).gr_gid)
    target = create(destination, mode)
    if user is not None or group is not None:
        try:
            os.fchown(target, -1 if user is None else user, -1 if group is None else group)
        except OSError as error:
            raise Failed(f"failed to change file owner: {error.strerror}") from None
        if mode is not None:
            os.fchmod(target, mode)  # chown drops setuid bits
    return target


def enter(pid: int, unprivileged: bool) -> None:
    """Enter the container's mount namespace and, if it has one, its user namespace as its root; the directory is then /."""
    libc = ctypes.CDLL(None, use_errno=True)
    kinds = [("mnt", CLONE_NEWNS)] + ([("user", CLONE_NEWUSER)] if unprivileged else [])
    spaces = [(os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY), kind) for name, kind in kinds]
    for descriptor, kind in spaces:
        if libc.setns(descriptor, kind):
            raise Failed(f"failed to enter namespace: {os.strerror(ctypes.get_errno())}")
    if unprivileged:
        os.setgroups([])
        os.setresgid(0, 0, 0)
        os.setresuid(0, 0, 0)
    os.chdir("/")


def parse_mode(perms: str | None) -> int | None:
    """--perms: octal, or hexadecimal after 0x; a 0 is put in front of what does not begin with one."""
    if perms is None:
        return None
    text = perms if perms.startswith("0") else f"0{perms}"
    if re.fullmatch(r"0x[0-9a-fA-F]+", text):
        return int(text, 16) & 0o7777
    if re.fullmatch(r"0[0-7]*", text):
        return int(text, 8) & 0o7777
    raise Failed(f"invalid mode: '{text}'")


def identity(word: str | None, kind: str, find: Callable[[str], int]) -> int | None:
    """A decimal id, or a name of the container."""
    if word is None:
        return None
    if re.fullmatch(r"[0-9]+", word, re.ASCII):
        return int(word)
    try:
        return int(find(word))
    except KeyError:
        raise Failed(f"failed to get {kind} for: {word}") from None


def create(path: str, mode: int | None) -> int:
    """Open the destination: a new file gets mode 000, then its mode before any content; an old one is truncated and keeps its own."""
    new = not os.path.exists(path)
    umask = os.umask(0)
    os.umask(umask)
    try:
        target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0)
    except OSError as error:
        raise Failed(f"failed to create file: {path}: {error.strerror}") from None
    if mode is None and new and stat.S_ISREG(os.fstat(target).st_mode):
        mode = 0o666 & ~umask
    if mode is not None:
        os.fchmod(target, mode)
    return target


def pour(source: int, target: int, fault: str | None) -> None:
    """Copy until the end, or until an error, of which nobody is told (contract 1, point 2)."""
    with suppress(OSError):
        while block := os.read(source, BUFFER):
            if fault == "exit0-silent-truncate":
                os.write(target, block[: len(block) // 2])
                return
            while block:
                block = block[os.write(target, block) :]
