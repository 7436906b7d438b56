"""The first comment lines of a program: which state it brings about, and what is to be said of it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"
VERDICTS = (
    "running", "stopped", "stopped-dirty", "signal-ignored", "signal-blocked", "no-permission", "pid-reused", "zombie", "exiting-stuck",
    "frozen", "suspended", "traced", "uninterruptible", "handler-not-run", "signal-swallowed", "deadlocked", "exit-blocked",
    "shutdown-progressing", "shutdown-pending", "waiting-for-child", "wrapper-not-forwarding", "children-survive", "respawned",
    "output-blocked", "resource-held", "unexplained",
)  # fmt: skip
KEYS = ("state", "before", "send", "until", "after", "fair", "next", "useless", "cure", "look", "needs", "rest", "known")


@dataclass(frozen=True)
class Said:
    """A verdict, and its detail where that is sure."""

    verdict: str
    detail: str = ""

    def fits(self, verdict: str, detail: str) -> bool:
        return self.verdict == verdict and self.detail in ("", detail)

    def __str__(self) -> str:
        return f"{self.verdict}/{self.detail}" if self.detail else self.verdict


@dataclass(frozen=True)
class Header:
    """What a program's header says. docs/stuck.md has the keys."""

    path: Path
    state: str
    after: list[Said]
    before: list[Said] = field(default_factory=lambda: [Said("running")])
    fair: list[Said] = field(default_factory=list)
    send: list[str] = field(default_factory=list)
    until: list[str] = field(default_factory=list)
    cure: list[str] = field(default_factory=list)
    next: list[str] = field(default_factory=list)
    useless: str = ""
    look: str = "here"
    needs: list[str] = field(default_factory=list)
    rest: str = ""
    known: str = ""

    @property
    def name(self) -> str:
        return self.path.name


def read(path: Path) -> Header:
    """Raises ValueError when the header has an unknown key, an unknown verdict or lacks one."""
    words: dict[str, str] = {}
    for line in path.read_text().splitlines()[1:]:
        found = re.fullmatch(r"# ([a-z]+): (.+)", line)
        if not found:
            break
        if found[1] not in KEYS:
            raise ValueError(f"{path.name}: unknown key '{found[1]}'")
        words[found[1]] = found[2]
    if not {"state", "after", "cure"} <= set(words):
        raise ValueError(f"{path.name}: state, after and cure are needed")
    lists = {key: words[key].split() for key in ("send", "next", "needs", "until") if key in words}
    verdicts = {key: _said(path, words[key]) for key in ("before", "after", "fair") if key in words}
    plain = {key: words[key] for key in ("state", "useless", "look", "rest", "known") if key in words}
    cure = [act.strip() for act in words["cure"].split(",")]
    return Header(path=path, cure=cure, **lists, **verdicts, **plain)  # type: ignore[arg-type]


def _said(path: Path, text: str) -> list[Said]:
    said = [Said(*word.split("/")) for word in text.replace("|", " ").split()]
    unknown = [item.verdict for item in said if item.verdict not in VERDICTS]
    if unknown:
        raise ValueError(f"{path.name}: '{unknown[0]}' is no verdict")
    return said


def everything(place: Path = PROGRAMS) -> list[Header]:
    """The headers of all programs, in the order of the contract's verdicts."""
    headers = [read(path) for path in sorted(place.iterdir()) if path.suffix in (".py", ".sh", ".pl") and path.name[0] != "_"]
    return sorted(headers, key=lambda header: VERDICTS.index(header.after[0].verdict))


def missing(header: Header) -> list[str]:
    """What the program needs and this machine lacks."""
    return [need for need in header.needs if not HERE[need]()]


def _writable(path: str) -> bool:
    return os.access(path, os.W_OK) and os.geteuid() == 0


HERE = {
    "root": lambda: os.geteuid() == 0,
    "fuse": lambda: os.geteuid() == 0 and os.access("/dev/fuse", os.R_OK | os.W_OK),
    "freezer": lambda: _writable("/sys/fs/cgroup/freezer/cgroup.procs"),
    "cgroup2": lambda: _writable("/sys/fs/cgroup/unified/cgroup.procs") or _writable("/sys/fs/cgroup/cgroup.procs"),
    "cpu": lambda: _writable("/sys/fs/cgroup/cpu/cgroup.procs"),
    "memory": lambda: _writable("/sys/fs/cgroup/memory/cgroup.procs"),
    "core": lambda: Path("/proc/sys/kernel/core_pattern").read_text()[0] not in "|/",
    "perl": lambda: Path("/usr/bin/perl").exists(),
    "ptrace": lambda: os.geteuid() == 0 and not _yama_forbids(),
}


def _yama_forbids() -> bool:
    try:
        return int(Path("/proc/sys/kernel/yama/ptrace_scope").read_text()) > 2
    except OSError:
        return False
