"""What a thread does in the kernel: the line of /proc/PID/task/TID/syscall, and what its number and wait channel stand for.

It knows no process and no signal. Numbers differ between machines; where a machine's are not known, only the wait channel speaks.
"""

from __future__ import annotations

import os
from typing import Any, Dict, Optional, Sequence

Call = Dict[str, Any]  # {"nr", "args" (six), "sp", "pc"}; nr -1: in no system call (page fault, stopped, dying)
_X86 = {
    0: "read", 1: "write", 2: "open", 4: "stat", 7: "poll", 16: "ioctl", 17: "pread", 18: "pwrite", 19: "readv", 20: "writev",
    23: "select", 24: "sched_yield", 34: "pause", 35: "nanosleep", 40: "sendfile", 42: "connect", 43: "accept", 44: "sendto",
    45: "recvfrom", 46: "sendmsg", 47: "recvmsg", 56: "clone", 57: "fork", 58: "vfork", 61: "wait4", 65: "semop", 70: "msgrcv",
    72: "fcntl", 73: "flock", 74: "fsync", 75: "fdatasync", 82: "rename", 128: "rt_sigtimedwait", 130: "rt_sigsuspend",
    162: "sync", 202: "futex", 208: "io_getevents", 219: "restart", 220: "semtimedop", 230: "clock_nanosleep", 231: "exit_group",
    232: "epoll_wait", 243: "mq_timedreceive", 247: "waitid", 257: "openat", 262: "newfstatat", 270: "pselect", 271: "ppoll",
    275: "splice", 281: "epoll_pwait", 288: "accept4", 306: "syncfs", 332: "statx", 426: "io_uring_enter", 435: "clone3",
    441: "epoll_pwait2",
}  # fmt: skip
_ARM = {
    22: "epoll_pwait", 25: "fcntl", 29: "ioctl", 32: "flock", 56: "openat", 63: "read", 64: "write", 65: "readv", 66: "writev",
    67: "pread", 68: "pwrite", 71: "sendfile", 72: "pselect", 73: "ppoll", 76: "splice", 79: "newfstatat", 82: "fsync", 83: "fdatasync",
    94: "exit_group", 95: "waitid", 98: "futex", 101: "nanosleep", 115: "clock_nanosleep", 128: "restart", 133: "rt_sigsuspend",
    137: "rt_sigtimedwait", 202: "accept", 203: "connect", 206: "sendto", 207: "recvfrom", 211: "sendmsg", 212: "recvmsg",
    220: "clone", 242: "accept4", 260: "wait4", 291: "statx", 426: "io_uring_enter", 435: "clone3",
}  # fmt: skip
NUMBERS = {"x86_64": _X86, "aarch64": _ARM}.get(os.uname().machine, {})
CHILD = ("wait4", "waitid")
WRITE = ("write", "writev", "pwrite", "sendto", "sendmsg", "sendfile", "splice")
SLEEP = ("nanosleep", "clock_nanosleep", "pause", "rt_sigsuspend")
POLL = ("poll", "ppoll", "select", "pselect", "epoll_wait", "epoll_pwait", "epoll_pwait2")
SYNC = ("fsync", "fdatasync", "sync", "syncfs", "rename")
FORK = ("vfork", "clone", "clone3", "fork")
# Families of wait channels: names are no API and change between kernels. Source: proc_pid_wchan(5), kernels 5.10 to 6.18.
CHANNELS = (
    ("futex", ("futex",)),
    ("wait4", ("do_wait", "wait_consider")),
    ("write", ("pipe_write", "anon_pipe_write", "n_tty_write", "tty_write", "sock_alloc_send", "unix_wait_for_peer", "wait_for_wmem")),
    ("vfork", ("kernel_clone", "_do_fork", "do_fork", "wait_for_vfork_done")),
    ("sleep", ("hrtimer_nanosleep", "do_nanosleep", "sys_pause", "sigsuspend")),
    ("poll", ("poll_schedule", "do_poll", "do_sys_poll", "do_select", "ep_poll", "do_epoll_wait", "core_sys_select")),
    ("fuse", ("request_wait_answer", "fuse_")),
    ("nfs", ("rpc_wait", "nfs_", "nfs4_")),
)
WAIT_MUTEX, FUTEX_WAIT, FUTEX_BITSET, FUTEX_PRIVATE = 2, 0, 9, 128


def parse(line: str) -> Optional[Call]:
    """The call of a thread that waits; None for one that runs. Source: proc_pid_syscall(5)."""
    words = line.split()
    if not words or words[0] == "running":
        return None
    numbers = [int(word, 0) for word in words]
    return {"nr": numbers[0], "args": numbers[1:-2], "sp": numbers[-2], "pc": numbers[-1]}


def name(call: Optional[Call]) -> str:
    """'futex', 'wait4', …; empty when there is no call, its number when it is not known here."""
    if call is None or call["nr"] < 0:
        return ""
    return NUMBERS.get(call["nr"], "syscall %d" % call["nr"])


def channel(wchan: Optional[str]) -> str:
    """The family of a wait channel, or an empty text."""
    for family, parts in CHANNELS:
        if wchan and any(part in wchan for part in parts):
            return family
    return ""


def family(thread: Dict[str, Any]) -> str:
    """Where a thread waits, in one word: the call's name, else what its wait channel stands for."""
    return name(thread["call"]) or channel(thread["wchan"])


def endless(call: Optional[Call]) -> bool:
    """Whether the call is a futex that only another thread of the same process can end: private, and without a time limit."""
    if name(call) != "futex" or call is None or len(call["args"]) < 4:
        return False
    operation = call["args"][1]
    return bool(operation & FUTEX_PRIVATE) and operation & 127 in (FUTEX_WAIT, FUTEX_BITSET, 6) and call["args"][3] == 0


def is_mutex(call: Optional[Call]) -> bool:
    """Whether the futex is that of a contended pthread mutex: the value that it waits on is 2. Source: glibc's lowlevellock.h."""
    return name(call) == "futex" and call is not None and call["args"][1] & 127 == FUTEX_WAIT and call["args"][2] == WAIT_MUTEX


def same(calls: Sequence[Optional[Call]]) -> bool:
    """Whether all of them are one call: number, arguments, stack pointer, place. No call at all is not the same one."""
    first = calls[0] if calls else None
    return first is not None and first["nr"] >= 0 and all(call == first for call in calls)
