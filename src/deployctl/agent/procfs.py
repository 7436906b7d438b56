"""What the kernel says of a process, read from /proc. It sends no signal, and it does not know what a workload is."""

from __future__ import annotations

import os
import signal
import time
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

Seen = Dict[str, Any]
TICKS = os.sysconf("SC_CLK_TCK")  # clock ticks a second
DEAD = ("Z", "X")
NAMES = {int(item): item.name[3:] for item in signal.Signals if item < 32}


class Glance(NamedTuple):
    """The least that tells one process from another: what a look at every process can afford.

    started is in clock ticks since boot; state is that of a living thread when the main thread has ended before the others.
    """

    pid: int
    started: int
    state: str
    ppid: int
    comm: str
    pgrp: int
    session: int


def read(path: str) -> bytes:
    """The whole file. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = [os.read(handle, 1 << 16)]
        while parts[-1]:
            parts.append(os.read(handle, 1 << 16))
    finally:
        os.close(handle)
    return b"".join(parts)


def text(raw: bytes) -> str:
    """Bytes of the kernel as text from which the same bytes can be made again."""
    return raw.decode("utf-8", "surrogateescape")


def everyone() -> Iterator[int]:
    """The pid of every process that /proc shows."""
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def boot_id() -> str:
    """The id of this boot: pids and start times of another one mean nothing."""
    return text(read("/proc/sys/kernel/random/boot_id")).strip()


def stat_of(path: str) -> Tuple[str, List[str]]:
    """(comm, the fields from `state` on). The comm may hold ")" and spaces. Source: proc_pid_stat(5)."""
    raw = text(read(path))
    end = raw.rindex(")")
    return raw[raw.index("(") + 1 : end], raw[end + 2 :].split()


def glance(pid: int) -> Optional[Glance]:
    """The process at a glance; None when it is gone or cannot be seen. A zombie whose other threads live is alive.

    Source: proc_pid_stat(5), fields 3 state, 4 ppid, 5 pgrp, 6 session, 20 num_threads, 22 starttime.
    """
    try:
        comm, fields = stat_of("/proc/%d/stat" % pid)
    except (OSError, ValueError):
        return None
    state = fields[0]
    if state in DEAD and int(fields[17]) > 1:
        state = next((other for other in _states(pid) if other not in DEAD), state)
    return Glance(pid, int(fields[19]), state, int(fields[1]), comm, int(fields[2]), int(fields[3]))


def _tasks(pid: int) -> List[str]:
    return ["/proc/%d/task/%s" % (pid, name) for name in os.listdir("/proc/%d/task" % pid)]


def _states(pid: int) -> Iterator[str]:
    try:
        for task in _tasks(pid):
            yield stat_of(task + "/stat")[1][0]
    except (OSError, ValueError):
        return


def same(seen: Seen) -> bool:
    """Whether that very process still lives: pid and start time (and the boot id, where it is given) are equal; a zombie is dead."""
    now = glance(seen["pid"])
    if now is None or now.started != seen["started"] or now.state in DEAD:
        return False
    return not seen.get("boot") or seen["boot"] == boot_id()


def hidden(pid: int) -> bool:
    """Whether there is a process of another user that /proc does not show us (hidepid). Source: proc(5), kill(2)."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return glance(pid) is None
    except OSError:
        pass
    return False


def elsewhere(pid: int) -> bool:
    """Whether the process lives in a pid namespace below ours: in a container of this host, where it is another target's.

    Source: proc_pid_status(5), NSpid: one pid for each namespace from ours down to its own.
    """
    try:
        return len(status_of("/proc/%d/status" % pid).get("NSpid", "").split()) > 1
    except OSError:
        return False


def signals(mask: str) -> List[str]:
    """The names of the signals in a hexadecimal mask; real-time signals have no name and are left out."""
    bits = int(mask, 16)
    return [name for number, name in NAMES.items() if bits >> (number - 1) & 1]


def status_of(path: str) -> Dict[str, str]:
    """Source: proc_pid_status(5)."""
    pairs = (line.partition(":") for line in text(read(path)).splitlines())
    return {name: value.strip() for name, _, value in pairs}


def argv_of(pid: int) -> List[str]:
    """The command line as it is shown; the process may have written over it. Raises OSError. Source: proc_pid_cmdline(5)."""
    return words(read("/proc/%d/cmdline" % pid))


def words(raw: bytes) -> List[str]:
    """The words of a command line as the kernel keeps it: each ends with a NUL."""
    return [text(word) for word in (raw[:-1] if raw.endswith(b"\0") else raw).split(b"\0")] if raw else []


def look(pid: int) -> Optional[Seen]:
    """What the kernel says of a process; None when it is gone, also when it goes while it is being read.

    Keys: docs/architecture.md section 6. blocked holds what every thread blocks, pending what waits for any of them; since is in
    seconds since the epoch, a hint only; pid1: it is the first process of its pid namespace, so that only handled signals reach it;
    traced: the pid of its tracer, or 0; unreadable: the names of what could not be read, which therefore means nothing.
    Source: proc_pid_stat(5), proc_pid_status(5).
    """
    try:
        _, fields = stat_of("/proc/%d/stat" % pid)
        whole = status_of("/proc/%d/status" % pid)
    except (OSError, ValueError):
        return None
    unreadable: List[str] = []
    try:
        argv = argv_of(pid)
    except OSError:
        argv, unreadable = [], ["cmdline"]
    blocked, pending = _masks(pid, whole, unreadable)
    now = glance(pid)
    if now is None or now.started != int(fields[19]):
        return None
    return {
        "pid": pid, "started": now.started, "boot": boot_id(), "state": now.state, "ppid": now.ppid, "argv": argv, "comm": now.comm,
        "uid": int(whole["Uid"].split()[0]), "since": round(time.time() - _age(now.started), 1),
        "ignored": signals(whole["SigIgn"]), "caught": signals(whole["SigCgt"]), "blocked": blocked, "pending": pending,
        "threads": int(fields[17]), "pgrp": int(fields[2]), "session": int(fields[3]),
        "pid1": whole.get("NSpid", str(pid)).split()[-1] == "1", "traced": int(whole.get("TracerPid", "0")), "unreadable": unreadable,
    }  # fmt: skip


def _age(started: int) -> float:
    """Seconds since the start. Start times and CLOCK_BOOTTIME share the kernel's clock; /proc/uptime may be lxcfs's own."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started / TICKS


def _masks(pid: int, whole: Dict[str, str], unreadable: List[str]) -> Tuple[List[str], List[str]]:
    """(blocked by every living thread, pending for the process or any thread): status alone shows the main thread's masks."""
    blocked, pending = None, int(whole["ShdPnd"], 16)
    try:
        for task in _tasks(pid):
            try:
                status = status_of(task + "/status")
            except (FileNotFoundError, ProcessLookupError):
                continue  # a thread that has just ended
            if status["State"][0] not in DEAD:
                mask = int(status["SigBlk"], 16)
                blocked = mask if blocked is None else blocked & mask
                pending |= int(status["SigPnd"], 16)
    except (FileNotFoundError, ProcessLookupError):
        pass
    except OSError:
        unreadable.append("task")
        blocked = 0
    return signals("%x" % (blocked or 0)), signals("%x" % pending)


def usage(pid: int, threads: bool = True) -> Optional[Dict[str, Optional[int]]]:
    """What a process has used since its start: cpu_ticks, written_bytes (None when unreadable), switches of its threads (None: not asked).

    written_bytes counts what it gave to write(2), whether or not it has reached a disk. Source: proc_pid_io(5), wchar.
    """
    try:
        _, fields = stat_of("/proc/%d/stat" % pid)
        switches = sum(_switches(task) for task in _tasks(pid)) if threads else None
    except (OSError, ValueError):
        return None
    written: Optional[int] = None
    try:
        lines = dict(line.split(b":") for line in read("/proc/%d/io" % pid).splitlines())
        written = int(lines[b"wchar"])
    except (OSError, ValueError, KeyError):
        pass
    return {"cpu_ticks": int(fields[11]) + int(fields[12]), "written_bytes": written, "switches": switches}


def _switches(task: str) -> int:
    try:
        status = status_of(task + "/status")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(status["voluntary_ctxt_switches"]) + int(status["nonvoluntary_ctxt_switches"])


def memory(pid: int, address: int, size: int) -> bytes:
    """Up to so many bytes at an address of the process; empty where they may not be read. It neither stops it nor attaches to it.

    Source: proc_pid_mem(5).
    """
    try:
        handle = os.open("/proc/%d/mem" % pid, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.pread(handle, size, address)
    except (OSError, OverflowError):
        return b""
    finally:
        os.close(handle)


def carries(pid: int, entry: bytes) -> bool:
    """Whether the environment that the process was started with has that entry (NAME=value)."""
    try:
        return b"\0" + entry + b"\0" in b"\0" + read("/proc/%d/environ" % pid)
    except OSError:
        return False


def environment(pid: int) -> Optional[Dict[str, str]]:
    """The environment that the process was started with; None when it is gone or may not be read. Source: proc_pid_environ(5)."""
    try:
        raw = read("/proc/%d/environ" % pid)
    except OSError:
        return None
    return dict(text(entry).split("=", 1) for entry in raw.split(b"\0") if b"=" in entry)
