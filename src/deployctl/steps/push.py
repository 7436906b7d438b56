"""push: brings changed files into the target, staged beside their destination; they go live together, right before the launch."""

from __future__ import annotations

import gzip
import hashlib
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from deployctl.errors import RefusedError, WordsError
from deployctl.fields import AbsolutePath, Filled
from deployctl.steps.base import Opened, Operations, Record, Session, Setting, Step
from deployctl.values import show_size

PIECE = 1 << 20  # bytes read at a time


@dataclass(frozen=True)
class Source:
    """One file of the controller: its path below the destination, where it is here, size in bytes, SHA-256, executable or not."""

    path: str
    file: Path
    size: int
    sha256: str
    executable: bool

    def as_data(self) -> dict[str, Any]:
        """What the agent needs to know of it."""
        return {"path": self.path, "size": self.size, "sha256": self.sha256, "executable": self.executable}


@dataclass(frozen=True)
class Staged:
    """The files that wait beside the destination; none when everything is there already."""

    root: str
    files: tuple[str, ...]


class Push(Step):
    """Brings the files of `from` that match `include` and not `exclude` (patterns as in .gitignore) to the directory `to`."""

    word: ClassVar[str] = "push"
    phase: ClassVar[str] = "prepare"

    source: Filled = Field(alias="from")
    to: AbsolutePath
    include: list[str] = Field(default_factory=list)
    exclude: list[str] = Field(default_factory=list)

    def sources(self, base: Path) -> tuple[Source, ...]:
        """The files to bring, by path, hashed. Raises WordsError when there are none."""
        root = base / Path(self.source).expanduser()
        if not root.exists():
            todo = "correct `from`, which is relative to the playbook"
            raise WordsError(f"'{self.source}' does not exist", where=f"push: {root}", todo=todo)
        found = [_source(path, file) for path, file in self._files(root)]
        if not found:
            raise WordsError("no file matches", where=f"push: {root}", todo="look at `include` and `exclude`")
        return tuple(sorted(found, key=lambda source: source.path))

    def _files(self, root: Path) -> Iterator[tuple[str, Path]]:
        from pathspec import GitIgnoreSpec

        if root.is_file():
            yield root.name, root
            return
        include = GitIgnoreSpec.from_lines(self.include or ["*"])
        exclude = GitIgnoreSpec.from_lines([*self.exclude, ".deployctl/", "__pycache__/"])
        for file in sorted(root.rglob("*")):
            path = file.relative_to(root).as_posix()
            if file.is_file() and include.match_file(path) and not exclude.match_file(path):
                yield path, file

    def gather(self, setting: Setting) -> tuple[Source, ...]:
        """The files of the controller, hashed."""
        return self.sources(setting.sources)

    def preview(self, gathered: tuple[Source, ...], session: Session, setting: Setting, opened: Opened) -> dict[str, Any]:
        """Which files would go: {"files": count, "changed": [paths], "bytes": sum}."""
        there = session.ask("manifest", root=self.to, paths=[source.path for source in gathered], stage=False)
        changed = _differing(gathered, there)
        return {"files": len(gathered), "changed": [source.path for source in changed], "bytes": sum(source.size for source in changed)}

    def prepare(self, gathered: tuple[Source, ...], session: Session, setting: Setting, opened: Opened, record: Record) -> Staged:
        """Compares hashes and stages what differs, in one bundle. Raises DeployError; then the live files are as they were."""
        began = time.monotonic()
        there = session.ask("manifest", root=self.to, paths=[source.path for source in gathered])
        changed = _differing(gathered, there)
        if not changed:
            record("unchanged", files=len(gathered), destination=self.to)
            return Staged(self.to, ())
        with tempfile.NamedTemporaryFile(prefix="deployctl-", suffix=".bundle") as bundle:
            write_bundle(changed, Path(bundle.name))
            sent = Path(bundle.name).stat().st_size
            session.put(Path(bundle.name), there["incoming"])
        session.ask("stage", root=self.to, bundle=there["incoming"], files=[source.as_data() for source in changed])
        record(
            "staged", files=len(gathered), changed=[source.path for source in changed], bytes=sum(source.size for source in changed),
            sent=sent, seconds=round(time.monotonic() - began, 3), destination=self.to,
        )  # fmt: skip
        return Staged(self.to, tuple(source.path for source in changed))

    def compile(self, setting: Setting, piece: Staged) -> Operations:
        """Going live, and back."""
        if not piece.files:
            return Operations()
        files = {"root": piece.root, "paths": list(piece.files)}
        return Operations(do=({"op": "golive", "sets": [files]},), undo=({"op": "goback", "sets": [files]},))


def _differing(sources: tuple[Source, ...], there: dict[str, Any]) -> list[Source]:
    return [source for source in sources if there["sha256"].get(source.path) != source.sha256]


def _source(path: str, file: Path) -> Source:
    digest, size = hashlib.sha256(), 0
    try:
        with file.open("rb") as stream:
            while piece := stream.read(PIECE):
                digest.update(piece)
                size += len(piece)
        return Source(path, file, size, digest.hexdigest(), bool(file.stat().st_mode & 0o100))
    except OSError as error:
        raise RefusedError(f"cannot read it: {error.strerror}", where=f"push: {file}", todo="mend its rights, or exclude it") from error


def write_bundle(sources: list[Source], bundle: Path) -> None:
    """One gzip stream of the files' bytes in order; sizes and hashes travel apart, in the request that unpacks it.

    Raises RefusedError when a file changed since it was hashed.
    """
    with gzip.open(bundle, "wb", compresslevel=3) as packed:
        for source in sources:
            sent = 0
            try:
                with source.file.open("rb") as stream:
                    while piece := stream.read(PIECE):
                        packed.write(piece)
                        sent += len(piece)
            except OSError as error:
                raise RefusedError(f"cannot read it: {error.strerror}", where=f"push: {source.file}", todo="run again") from error
            if sent != source.size:
                what = f"it changed while it was read ({show_size(source.size)}, then {show_size(sent)})"
                raise RefusedError(what, where=f"push: {source.file}", todo="run again when nobody writes it")
