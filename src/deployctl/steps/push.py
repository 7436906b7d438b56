"""push: brings changed files into the target, staged beside their destination; they go live together, right before the launch."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, field_serializer, model_validator

from deployctl.errors import RefusedError, WordsError
from deployctl.fields import AbsolutePath, FileMode, Filled, carried
from deployctl.steps import bundle, sources
from deployctl.steps.base import Opened, Operations, Record, Session, Setting, Step
from deployctl.steps.sources import Source
from deployctl.values import show_size

TELL = 2.0  # seconds between two words of how far the bytes are
BLOCK = 4096  # bytes: what the least file takes
SPARE = 8  # files of our own


@dataclass(frozen=True)
class Staged:
    """The files that wait beside the destination, and those that are to go; none when everything is there already.

    owner and group are ids of the target, for directories that are made.
    """

    root: str
    files: tuple[str, ...]
    gone: tuple[str, ...] = ()
    owner: int | None = None
    group: int | None = None


@dataclass(frozen=True)
class Difference:
    """What a push has to do: files that travel, files whose bytes are right and owner or mode is not, files that are to go."""

    travel: tuple[Source, ...]
    undressed: tuple[Source, ...]
    gone: tuple[str, ...]

    @property
    def staged(self) -> tuple[str, ...]:
        """The paths of the files that are to be staged."""
        return tuple(sorted(source.path for source in (*self.travel, *self.undressed)))

    @property
    def bytes(self) -> int:
        """Bytes of the files that travel."""
        return sum(source.size for source in self.travel)

    @property
    def taken(self) -> int:
        """Bytes of a disk that the staged files take."""
        return sum(source.taken + BLOCK for source in (*self.travel, *self.undressed))

    @property
    def entries(self) -> int:
        """Files and directories that staging makes, and going live once more."""
        directories = {above for path in (*self.staged, *self.gone) for above in Path(path).parents}
        return len(self.staged) + 2 * len(directories) + SPARE


def _listed(value: object) -> object:
    if isinstance(value, (list, tuple)):
        if not value:
            raise WordsError("the list is empty", todo="name a file, a directory or a glob")
        return value
    if value == "":
        raise WordsError("the text is empty", todo="write something, or remove the key")
    return [value]


class Push(Step):
    """Brings the files of `from` that match `include` and not `exclude` (patterns as in .gitignore) to the directory `to`."""

    word: ClassVar[str] = "push"
    phase: ClassVar[str] = "prepare"

    source: Annotated[tuple[Filled, ...], BeforeValidator(carried(_listed))] = Field(alias="from")
    to: AbsolutePath
    include: list[str] = Field(default_factory=list)
    exclude: list[str] = Field(default_factory=list)
    owner: Filled | None = None
    group: Filled | None = None
    mode: FileMode | None = None
    delete: bool = False
    via: Literal["push", "session"] = "push"

    @field_serializer("source")
    def _as_written(self, source: tuple[str, ...]) -> object:
        return source[0] if len(source) == 1 else list(source)

    @model_validator(mode="after")
    def _delete_needs_include(self) -> Push:
        if self.delete and not self.include:
            todo = "add `include: ['*.py']`, or whatever below `to` is this push's own: without it logs and checkpoints would go, too"
            raise ValueError(WordsError("`delete` needs `include`", todo=todo), "delete")
        return self

    def find(self, base: Path) -> tuple[Source, ...]:
        """The files to bring, by path, hashed. Raises WordsError when there are none."""
        return sources.find(self.source, base, self._patterns())

    def _patterns(self) -> sources.Patterns:
        return sources.Patterns(self.include, self.exclude)

    def gather(self, setting: Setting) -> tuple[Source, ...]:
        """The files of the controller, hashed."""
        return self.find(setting.sources)

    def preview(self, gathered: tuple[Source, ...], session: Session, setting: Setting, opened: Opened) -> dict[str, Any]:
        """Which files would go: {"files": count, "changed": [paths], "gone": [paths], "bytes": sum of those that travel}."""
        _, difference = self._compare(gathered, session, setting)
        if difference.staged or difference.gone:
            place = session.ask("place", root=self.to, remove=difference.gone, stage=False)
            _require_room(self.to, place, difference.taken, difference.entries)
        found = {"files": len(gathered), "changed": list(difference.staged), "bytes": difference.bytes}
        return {**found, "gone": list(difference.gone)} if self.delete else found

    def prepare(self, gathered: tuple[Source, ...], session: Session, setting: Setting, opened: Opened, record: Record) -> Staged:
        """Compares hashes and stages what differs, in one bundle. Raises DeployError; then the live files are as they were."""
        began = time.monotonic()
        there, difference = self._compare(gathered, session, setting)
        if not difference.staged and not difference.gone:
            record("unchanged", files=len(gathered), destination=self.to)
            return Staged(self.to, ())
        place = session.ask("place", root=self.to, remove=difference.gone)
        _require_room(self.to, place, difference.taken, difference.entries)
        sent = self._stage(difference, place, session, record) if difference.staged else 0
        record(
            "staged", files=len(gathered), changed=list(difference.staged), gone=list(difference.gone), bytes=difference.bytes,
            sent=sent, seconds=round(time.monotonic() - began, 3), destination=self.to,
        )  # fmt: skip
        return Staged(self.to, difference.staged, difference.gone, there["owner"], there["group"])

    def compile(self, setting: Setting, piece: Staged) -> Operations:
        """Going live, and back."""
        if not piece.files and not piece.gone:
            return Operations()
        files: dict[str, Any] = {"root": piece.root, "paths": list(piece.files)}
        asked = {"remove": list(piece.gone), "owner": piece.owner, "group": piece.group}
        files |= {key: value for key, value in asked.items() if value not in (None, [])}
        return Operations(do=({"op": "golive", "sets": [files]},), undo=({"op": "goback", "sets": [files]},))

    def _wish(self) -> dict[str, Any]:
        return {"owner": self.owner, "group": self.group, "mode": self.mode}

    def _compare(self, gathered: tuple[Source, ...], session: Session, setting: Setting) -> tuple[dict[str, Any], Difference]:
        """(the agent's answer, what is to be done)."""
        workload = setting.workload
        keep = [str(Path(workload.directory) / workload.log)] if workload.log else []
        files = [{"path": source.path, "size": source.size, "executable": source.executable} for source in gathered]
        there = session.ask("manifest", root=self.to, files=files, list=self.delete, keep=keep, **self._wish())
        travel = tuple(source for source in gathered if there["sha256"][source.path] != source.sha256)
        right = {source.path for source in gathered} - {source.path for source in travel}
        undressed = tuple(source for source in gathered if source.path in right and source.path in there["undressed"])
        patterns, brought = self._patterns(), {source.path for source in gathered}
        gone = tuple(path for path in there["listed"] if path not in brought and patterns.match(path))
        return there, Difference(travel, undressed, gone)

    def _stage(self, difference: Difference, place: dict[str, Any], session: Session, record: Record) -> int:
        """Sends the bundle and has it unpacked; the bytes that travelled."""
        packed = bundle.arrange(difference.travel)
        files = [*(source.as_data() for source in packed.files), *({**source.as_data(), "here": True} for source in difference.undressed)]
        request = {"root": self.to, "packed": packed.packed, "files": files, **self._wish()}
        if self.via == "session" or not packed.files:
            counted = _Counted()
            tell = _Teller(record, self.to, difference.bytes)
            session.feed("stage", map(counted, packed.pieces(tell)), bundle=None, **request)
            return counted.bytes
        with tempfile.NamedTemporaryFile(prefix="deployctl-", suffix=".bundle") as file:
            sent = _write(packed, Path(file.name))
            _require_room(self.to, place, difference.taken + sent, difference.entries)
            session.put(Path(file.name), place["incoming"], _Teller(record, self.to, sent))
        session.ask("stage", bundle=place["incoming"], **request)
        return sent


class _Counted:
    """Counts the bytes of pieces that pass."""

    def __init__(self) -> None:
        self.bytes = 0

    def __call__(self, piece: bytes) -> bytes:
        self.bytes += len(piece)
        return piece


class _Teller:
    """Tells how many bytes have gone, every now and then."""

    def __init__(self, record: Record, destination: str, total: int) -> None:
        self._record, self._destination, self._total = record, destination, total
        self._next = time.monotonic() + TELL

    def __call__(self, sent: int) -> None:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + TELL
            self._record("sending", sent=sent, of=self._total, destination=self._destination)


def _write(packed: bundle.Bundle, path: Path) -> int:
    """Writes the bundle to a file of this machine; its size in bytes."""
    pieces = packed.pieces()
    with path.open("wb") as file:
        for piece in pieces:
            try:
                file.write(piece)
                file.flush()
            except OSError as error:
                todo = "make room there, name another directory in TMPDIR, or use `via: session`, which needs none"
                raise RefusedError(f"the bundle cannot be written: {error.strerror}", where=f"push: {path.parent}", todo=todo) from error
    return path.stat().st_size


def _require_room(root: str, place: dict[str, Any], needed: int, entries: int) -> None:
    """Raises RefusedError when the destination's file system has not that many bytes, or files, left."""
    if needed > place["free"]:
        what = f"{show_size(needed)} are needed there, {show_size(place['free'])} are free"
        raise RefusedError(what, where=f"push: {root}", todo="make room, then run again")
    if place["inodes"] is not None and entries > place["inodes"]:
        what = f"{entries} files and directories are to be made there, the file system can hold {place['inodes']} more"
        raise RefusedError(what, where=f"push: {root}", todo="remove files that nobody needs, then run again")
