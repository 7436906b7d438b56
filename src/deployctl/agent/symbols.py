"""Where a symbol of a running program lies in its memory: the symbols that its file exports, and where it is mapped. Source: elf(5)."""

from __future__ import annotations

import os
import struct
from typing import Iterator, NamedTuple, Optional, Tuple

from . import files, procfs

SLOW = ("fuse", "nfs", "cifs", "9p", "ceph", "glusterfs")  # a file there may never come
DYNSYM = 11


class Mapped(NamedTuple):
    """A file of a process: where its first byte is mapped, and a path that leads to it from here."""

    start: int
    path: str
    name: str


def mapped(pid: int, part: str) -> Iterator[Mapped]:
    """The executable files of the process whose names hold `part`, each once; none that lies on a network's file system."""
    seen = set()
    for line in procfs.text(procfs.read("/proc/%d/maps" % pid)).splitlines():
        words = line.split(None, 5)
        if len(words) == 6 and int(words[2], 16) == 0 and part in os.path.basename(words[5]) and words[5] not in seen:
            seen.add(words[5])
            mount = files.mount_of(pid, words[5])
            if mount is not None and mount["kind"].startswith(SLOW):
                continue
            yield Mapped(int(words[0].split("-")[0], 16), "/proc/%d/root%s" % (pid, words[5]), words[5])


def address(file: Mapped, name: bytes) -> Optional[int]:
    """The address of an exported symbol in the process; None when the file does not export it. Raises OSError."""
    with open(file.path, "rb") as stream:
        head = stream.read(64)
        if head[:5] != b"\x7fELF\x02" or head[5] != 1:  # 64 bit, little endian
            return None
        kind = struct.unpack_from("<H", head, 16)[0]
        offset, size, count = struct.unpack_from("<Q", head, 40)[0], *struct.unpack_from("<HH", head, 58)
        stream.seek(offset)
        sections = [struct.unpack_from("<IIQQQQIIQQ", stream.read(size)) for _ in range(count)]
        found = next((section for section in sections if section[1] == DYNSYM), None)
        value = _value(stream, found, sections[found[6]], name) if found else None
    if value is None:
        return None
    return value + file.start if kind == 3 else value  # ET_DYN: addresses count from where it is mapped


def _value(stream: "object", symbols: Tuple[int, ...], strings: Tuple[int, ...], name: bytes) -> Optional[int]:
    def part(section: Tuple[int, ...]) -> bytes:
        stream.seek(section[4])  # type: ignore[attr-defined]
        return bytes(stream.read(section[5]))  # type: ignore[attr-defined]

    names, table = part(strings), part(symbols)
    at = names.find(b"\0" + name + b"\0") + 1
    if not at:
        return None
    for entry, _, _, section, value, _ in struct.iter_unpack("<IBBHQQ", table):
        if entry == at and section:
            return int(value)
    return None
