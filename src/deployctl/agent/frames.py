"""The Python frames of a process's main thread, read from its memory: it is neither stopped nor attached to, and needs no py-spy.

The layout is that of each CPython; from 3.12 on the interpreter itself says where things lie (_Py_DebugOffsets). What is read while it
changes may be nonsense: every text is checked, and what does not hold together is no answer. Source: CPython's Include/cpython and
Include/internal, 3.8 to 3.13.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import struct
import time
from typing import Dict, List, NamedTuple, Optional, Tuple

from . import symbols

READS, PAUSE = 12, 0.004  # how often, and how far apart (seconds), the innermost frame is read to see whether it goes on
TRIES = 4
MOST_OPEN = 4096  # descriptors
SIGNALS = 32  # those that a program may get; the real-time ones are left out
DEEPEST, MOST_THREADS, LONGEST = 64, 512, 400
COOKIE = b"xdebugpy"
_VERSION = re.compile(r"python(3\.\d+)")


class Layout(NamedTuple):
    """Offsets in bytes. `frame` leads from a thread to its innermost frame, in one or two steps."""

    interpreters: int  # in the runtime: the first interpreter
    threads: int  # in an interpreter: its newest thread
    next: int  # in a thread: the one before
    frame: Tuple[int, ...]
    previous: int  # in a frame: its caller
    code: int
    instruction: int
    file: int  # in a code object
    name: int
    text: int  # in a string: its characters
    following: int = 0  # in an interpreter: the one before
    tripped: int = 0  # in the runtime: a signal has come whose handler has not run
    handlers: int = 0  # in the runtime: the table of handlers, right before that word; 0: it lies elsewhere


_OLD = Layout(32, 8, 8, (24,), 24, 32, 104, 104, 112, 48, tripped=344)
LAYOUTS: Dict[str, Layout] = {
    "3.8": _OLD._replace(tripped=1144),
    "3.9": _OLD,
    "3.10": _OLD._replace(instruction=96),
    "3.11": Layout(40, 16, 8, (56, 8), 48, 32, 56, 112, 120, 48, tripped=352),
    "3.12": Layout(40, 72, 8, (56, 0), 8, 0, 56, 112, 120, 40, tripped=1512, handlers=464),
}
TOLD = 0x030D  # the version whose own table is understood: places of its words, eight bytes each


class Stack(NamedTuple):
    """The frames, the innermost first, as `function (file.py)`; goes_on: other instructions were seen to be run meanwhile."""

    frames: List[str]
    goes_on: bool
    tripped: Optional[bool]  # a signal has come, and the interpreter has not run its handler; None: not known


def within(pid: int, seconds: float) -> Optional[Stack]:
    """`read` in a process of its own, which is left behind when a file that it needs never comes; None as well when time is up."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.closerange(3, writing)  # what is left behind must not keep a lock of ours
            os.closerange(writing + 1, MOST_OPEN)
            found = read(pid)
            os.write(writing, json.dumps(found).encode("ascii") if found else b"null")
        finally:
            os._exit(0)
    os.close(writing)
    try:
        ready, _, _ = select.select([reading], [], [], seconds)
        raw = os.read(reading, 1 << 16) if ready else b""
    finally:
        os.close(reading)
        _end(child)
    found = json.loads(raw) if raw else None
    return Stack(*found) if found else None


def read(pid: int) -> Optional[Stack]:
    """The frames of the main thread; None when they cannot be read. Raises nothing that the memory of another process can cause."""
    try:
        handle = os.open("/proc/%d/mem" % pid, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        memory = Memory(handle)
        for file in symbols.mapped(pid, "python"):
            runtime = symbols.address(file, b"_PyRuntime")
            layout = runtime and _layout(memory, runtime, file.name)
            if runtime and layout:
                return _settled(memory, runtime, layout)
    except (OSError, ValueError, OverflowError, struct.error):
        pass
    finally:
        os.close(handle)
    return None


def _settled(memory: Memory, runtime: int, layout: Layout) -> Stack:
    """The stack once it holds together. Raises OSError when it never does."""
    for _ in range(TRIES - 1):
        try:
            return _stack(memory, runtime, layout)
        except (OSError, OverflowError):
            pass  # it changed while it was read
    return _stack(memory, runtime, layout)


class Memory:
    """The memory of a process. Every read raises OSError where nothing is mapped."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def raw(self, address: int, size: int) -> bytes:
        """So many bytes."""
        found = os.pread(self.handle, size, address)
        if len(found) < size:
            raise OSError("nothing is mapped there")
        return found

    def pointer(self, address: int) -> int:
        """A pointer, or a word of eight bytes."""
        return int(struct.unpack("<Q", self.raw(address, 8))[0])

    def text(self, address: int, layout: Layout) -> str:
        """A string of ASCII. Raises ValueError for anything else."""
        size = self.pointer(address + 16)
        if not 0 < size <= LONGEST:
            raise ValueError("no string")
        found = self.raw(address + layout.text, size).decode("ascii")
        if not found.isprintable():
            raise ValueError("no string")
        return found


def _layout(memory: Memory, runtime: int, name: str) -> Optional[Layout]:
    if memory.raw(runtime, 8) == COOKIE:
        return _told(memory, runtime)
    found = _VERSION.search(os.path.basename(name)) or _VERSION.search(name)
    return LAYOUTS.get(found.group(1)) if found else None


def _told(memory: Memory, runtime: int) -> Optional[Layout]:
    """The layout by the interpreter's own table, for the version whose table this is."""
    words = struct.unpack("<71Q", memory.raw(runtime, 8 * 71))
    if words[1] >> 16 != TOLD or words[2]:  # words[2]: built without the lock of the interpreter
        return None
    thread, frame, code = words[19:28], words[28:34], words[34:44]
    return Layout(
        words[5], words[9], thread[2], (thread[4],), frame[1], frame[2], frame[3], code[1], code[2], words[70], words[8], 2128, 1080
    )


def _stack(memory: Memory, runtime: int, layout: Layout) -> Stack:
    thread = _main(memory, runtime, layout)
    marks = set()
    for _ in range(READS):
        frame = _frame(memory, thread, layout)
        marks.add((frame, memory.pointer(frame + layout.instruction) if frame else 0))
        time.sleep(PAUSE)
    found: List[str] = []
    frame = _frame(memory, thread, layout)
    while frame and len(found) < DEEPEST:
        try:
            code = memory.pointer(frame + layout.code)
            file = memory.text(memory.pointer(code + layout.file), layout)
            name = memory.text(memory.pointer(code + layout.name), layout)
            if not name.startswith("<interpreter"):
                found.append("%s (%s)" % (name, os.path.basename(file)))
        except (OSError, ValueError):
            pass  # a frame of the interpreter's own, without code
        frame = memory.pointer(frame + layout.previous)
    return Stack(found, len(marks) > 1, _tripped(memory, runtime, layout))


def _tripped(memory: Memory, runtime: int, layout: Layout) -> Optional[bool]:
    number = struct.unpack("<i", memory.raw(runtime + layout.tripped, 4))[0]
    return bool(number) if number in (0, 1) and (not layout.handlers or _is_table(memory, runtime + layout.handlers)) else None


def _is_table(memory: Memory, address: int) -> bool:
    """Whether the table of handlers is there: this place may move between the releases of a version. Most signals have one handler."""
    rows = [struct.unpack("<iiQ", memory.raw(address + 16 * number, 16)) for number in range(1, SIGNALS)]
    functions = [row[2] for row in rows]
    return (
        all(row[0] in (0, 1) for row in rows) and max(functions.count(function) for function in functions) > SIGNALS // 2 and any(functions)
    )


def _frame(memory: Memory, thread: int, layout: Layout) -> int:
    address = thread
    for offset in layout.frame:
        address = memory.pointer(address + offset)
    return address


def _main(memory: Memory, runtime: int, layout: Layout) -> int:
    """The oldest thread of the oldest interpreter; both lists have the newest first."""
    interpreter = _last(memory, memory.pointer(runtime + layout.interpreters), layout.following)
    return _last(memory, memory.pointer(interpreter + layout.threads), layout.next)


def _last(memory: Memory, item: int, link: int) -> int:
    """The end of a list whose items point to the next one at the offset `link`."""
    for _ in range(MOST_THREADS):
        following = memory.pointer(item + link)
        if not following:
            break
        item = following
    return item


def _end(child: int) -> None:
    """KILL, and a moment for it; one that the kernel holds is left behind."""
    os.kill(child, signal.SIGKILL)
    until = time.monotonic() + 0.2
    while time.monotonic() < until and not os.waitpid(child, os.WNOHANG)[0]:
        time.sleep(0.005)
