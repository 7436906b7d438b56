"""What must be true after a round, looked at past deployctl: processes by the kernel, files by their bytes, the lock by trying it."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deployctl.agent.state import NEW
from tests.chaos.eyes import Sight
from tests.chaos.ground import Ground

FLAG = "--profile-interval=60"
WRITTEN = 2.0  # seconds that a minder has to write down an end
EXITS = 1.0  # seconds between the end of a process's name and that of its open files, at the most
WORK_FILES = (".job", ".cancel", ".reserve", ".start", ".zip", ".tell")
HALF = f"*{NEW}"  # what the agent, and the minder, call a file while they write it


@dataclass(frozen=True)
class Broken:
    """An invariant that does not hold, and what was seen instead."""

    name: str
    detail: str


def one_new_trainer(ground: Ground, who: str) -> Iterator[Broken]:
    """Exactly one runs, with the new flag."""
    seen = ground.sights()
    if len(seen) != 1:
        yield Broken("trainers", f"{who}: {len(seen)} run: {_list(seen)}")
    elif FLAG not in seen[0].argv:
        yield Broken("trainers", f"{who}: it runs without {FLAG}: {_list(seen)}")


def one_release(ground: Ground, who: str, wanted: dict[str, str] | None = None) -> Iterator[Broken]:
    """The files at the destination are those of one release; of the wanted one, where one is given."""
    live, releases = ground.live(), {"old": ground.old, "new": ground.wanted()}
    if wanted is not None and live != wanted:
        yield Broken("files", f"{who}: {_kinds(live, releases)}, all were to be new")
    elif live not in releases.values():
        yield Broken("files", f"{who}: {_kinds(live, releases)}")


def _kinds(live: dict[str, str], releases: dict[str, dict[str, str]]) -> str:
    names = sorted({*live, *releases["old"], *releases["new"]})
    return ", ".join(f"{name} {_kind(name, live, releases)}" for name in names)


def _kind(name: str, live: dict[str, str], releases: dict[str, dict[str, str]]) -> str:
    if name not in live:
        return "missing"
    return next((release for release, files in releases.items() if files.get(name) == live[name]), "torn")


def lock_is_free(ground: Ground, who: str) -> Iterator[Broken]:
    """Nobody holds the lock, a moment after the last process of the run lost its name: one that exits gives up its files after that."""
    path = ground.path(f"{ground.state}/workloads/train/lock")
    until = time.monotonic() + EXITS
    with suppress(FileNotFoundError):
        while not _free(path):
            if time.monotonic() > until:
                yield Broken("lock", f"{who}: held; its text: {path.read_text(errors='replace')}")
                return
            time.sleep(0.02)


def _free(path: Path) -> bool:
    handle = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return True


def record_is_true(ground: Ground) -> Iterator[Broken]:
    """The record names the process that runs."""
    record, seen = read_json(ground.path(f"{ground.state}/workloads/train/record.json")), ground.sights()
    if record is None:
        yield Broken("record", "there is none, or it is damaged")
    elif len(seen) == 1:
        told = record["pid"], record["started"], tuple(record["argv"])
        is_so = seen[0].inner, seen[0].started, seen[0].argv
        if told != is_so:
            yield Broken("record", f"it says {told}, what runs is {is_so}")


def nothing_is_staged(ground: Ground) -> Iterator[Broken]:
    """No staged file, bundle, file that only a run under way needs, or half-written record is left in the target."""
    place = ground.path(f"{ground.directory}/.deployctl")
    left = [path for path in place.rglob("*") if path.is_file() and ("new" in path.relative_to(place).parts[:2] or path.name == "bundle")]
    if left:
        yield Broken("staging", ", ".join(str(path.relative_to(place)) for path in left))
    work = [path.name for path in ground.path(ground.runs).glob("*") if path.name.endswith(WORK_FILES)]
    if work:
        yield Broken("work files", ", ".join(sorted(work)))
    partial = [*ground.path(f"{ground.state}/workloads").rglob(HALF), *place.rglob(HALF)]
    if partial:
        yield Broken("half-written", ", ".join(f"{path.parent.name}/{path.name}" for path in partial))


def host_is_clean(ground: Ground) -> Iterator[Broken]:
    """No private directory is left on the host; an empty one says so."""
    for directory in ground.host_tmp.glob("deployctl-*"):
        files = [path.name for path in directory.rglob("*")]
        yield Broken("host staging", f"{directory.name}: {', '.join(files) or 'empty'}")


def saves_are_whole(ground: Ground) -> Iterator[Broken]:
    """Whoever worked and was ended has saved before, since the ladder begins with an INT that it hears; and that checkpoint is whole."""
    lives = re.split(r"(?m)^(?=version \d)", _text(ground.path(ground.log)))[1:]
    for life in lives[:-1] if ground.sights() else lives:
        saved = re.search(r"saved (\S+), leaving", life)
        if saved is None and re.search(r"(?m)^step \d", life):
            what = "the save was cut" if "interrupted, finishing" in life else "it was ended without an interrupt"
            yield Broken("checkpoint", f"{what}: {life.splitlines()[0]} … {' / '.join(life.splitlines()[-3:])}")
        elif saved and (path := ground.path(f"{ground.directory}/{saved[1]}")).exists() and not _whole(path):
            yield Broken("checkpoint", f"{saved[1]} is not whole")


def died_of_its_disk(ground: Ground, run: str) -> bool:
    """Whether the trainer that the run launched ended by itself because its own disk was full: no word of deployctl is wrong by that.

    Where its last words had no room its exit status, as the minder kept it, says that nobody killed it.
    """
    until = time.monotonic() + WRITTEN
    while not ground.sights() and time.monotonic() < until:
        ended = read_json(ground.path(f"{ground.runs}/../exit.json")) or {}
        by_itself = ended.get("run") == run and ended.get("status", 0) != 0
        if by_itself or "No space left on device" in _text(ground.path(ground.log))[-2000:]:
            return True
        time.sleep(0.05)
    return False


def _whole(path: Path) -> bool:
    data = path.read_bytes()
    return hashlib.sha256(data[:-64]).hexdigest().encode() == data[-64:]


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in the file; None for none or a damaged one."""
    try:
        found: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _list(seen: list[Sight]) -> str:
    return "; ".join(f"pid {one.inner}: {' '.join(one.argv)}" for one in seen) or "none"
