"""The controller's journal: one event file a run, the record's own format. It never stops a restart."""

from __future__ import annotations

import errno
import fcntl
import json
import os
from contextlib import suppress
from pathlib import Path

from deployctl.events import Event

KEPT = 200  # runs


class Journal:
    """Appends events to the file of their run (0600), each flushed at once. `trouble` holds the first reason why it could not."""

    def __init__(self, directory: Path | None = None) -> None:
        self.directory = directory or default_directory()
        self.trouble: str | None = None

    def append(self, event: Event) -> None:
        """One event; a fault of the disk is kept in `trouble`, since a run matters more than its journal.

        A line that a killed writer has torn is ended first; one that the disk has no room for leaves no part of it.
        """
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = self.directory / f"{event['run']}.jsonl"
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                _write(handle, json.dumps(event, ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n")
            finally:
                os.close(handle)
            if event["what"] == "begin":
                self._prune()
        except OSError as error:
            self.trouble = self.trouble or f"{self.directory}: {error.strerror}"

    def read(self, run: str) -> list[Event]:
        """The events of a run, none when it is not known here; a torn last line is passed over."""
        return read(self.directory / f"{run}.jsonl")

    def newest(self) -> str | None:
        """The id of the newest run; an id begins with its time."""
        return max((path.stem for path in self.directory.glob("*.jsonl")), default=None)

    def _prune(self) -> None:
        for old in sorted(self.directory.glob("*.jsonl"))[:-KEPT]:
            old.unlink(missing_ok=True)


def _write(handle: int, line: bytes) -> None:
    """Appends a line, whole or not at all. Raises OSError."""
    with suppress(OSError):  # not every file system has locks; until it is closed, a line that another one writes this moment is not torn
        fcntl.flock(handle, fcntl.LOCK_EX)
    end = os.fstat(handle).st_size
    if end and os.pread(handle, 1, end - 1) != b"\n":
        line = b"\n" + line
    if os.write(handle, line) < len(line):
        os.ftruncate(handle, end)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def read(path: Path) -> list[Event]:
    """The events of a file, the controller's or the target's; none of a file that is not there.

    A line that is torn, or no event, is passed over; one that stands twice is one event: two deployctl of this machine followed the run.
    """
    events: list[Event] = []
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError:
        return []
    for line in dict.fromkeys(lines):
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and "what" in event:
            events.append(event)
    return events


def default_directory() -> Path:
    """The platform's state directory of the user."""
    import platformdirs

    return Path(platformdirs.user_state_dir("deployctl")) / "runs"
