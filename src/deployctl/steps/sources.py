"""Which files of the controller a push brings, and under which path: files, trees and globs through patterns as in .gitignore."""

from __future__ import annotations

import glob
import hashlib
import os
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deployctl.errors import RefusedError, WordsError

PIECE = 1 << 20  # bytes read at a time
NEVER = (".deployctl/", "__pycache__/")
BLOCK = 512  # bytes that st_blocks counts


@dataclass(frozen=True)
class Source:
    """One file of the controller: its path below the destination, where it is here, size and what it takes on a disk in bytes, SHA-256."""

    path: str
    file: Path
    size: int
    sha256: str
    executable: bool
    taken: int = 0

    @property
    def sparse(self) -> bool:
        """Whether it has holes."""
        return self.taken < self.size

    def as_data(self) -> dict[str, Any]:
        """What the agent needs to know of it."""
        fields = {"path": self.path, "size": self.size, "sha256": self.sha256, "executable": self.executable}
        return {**fields, "sparse": True} if self.sparse else fields


class Patterns:
    """`include` and `exclude` of a push."""

    def __init__(self, include: Iterable[str], exclude: Iterable[str]) -> None:
        from pathspec import GitIgnoreSpec

        self._include = GitIgnoreSpec.from_lines(list(include) or ["*"])
        self._exclude = GitIgnoreSpec.from_lines([*exclude, *NEVER])

    def match(self, path: str) -> bool:
        """Whether the path, relative to the source and to the destination, is the push's business."""
        return bool(self._include.match_file(path)) and not self._exclude.match_file(path)


def find(words: Iterable[str], base: Path, patterns: Patterns) -> tuple[Source, ...]:
    """The files to bring, by path, hashed. Raises WordsError when there are none, RefusedError for what no file can be made of."""
    found: dict[str, Path] = {}
    words = tuple(words)
    for word in words:
        for path, file in _files(word, base, patterns):
            if found.setdefault(path, file) != file:
                what = f"two sources bring '{path}': {found[path]} and this one"
                raise WordsError(what, where=f"push: {file}", todo="exclude one, or use a push of its own")
    if not found:
        raise WordsError("no file matches", where=f"push: {base / words[0]}", todo="look at `include` and `exclude`")
    _refuse_clashes(found)
    return tuple(_source(path, found[path]) for path in sorted(found))


def _files(word: str, base: Path, patterns: Patterns) -> Iterator[tuple[str, Path]]:
    root = base / Path(word).expanduser()
    if root.is_dir():
        yield from _tree(root, "", patterns)
    elif root.exists():
        yield root.name, root
    elif glob.has_magic(word):
        yield from _matching(root, patterns)
    else:
        raise WordsError(f"'{word}' does not exist", where=f"push: {root}", todo="correct `from`, which is relative to the playbook")


def _matching(pattern: Path, patterns: Patterns) -> Iterator[tuple[str, Path]]:
    """What a glob finds; the paths begin behind the last directory that is written without wildcards."""
    parts = pattern.parts
    fixed = next(index for index, part in enumerate(parts) if glob.has_magic(part))
    top = Path(*parts[:fixed])
    found = glob.glob(str(Path(*parts[fixed:])), root_dir=top, recursive=True)  # noqa: PTH207 - Path.glob goes into hidden directories
    for name in sorted(found):
        if (top / name).is_dir() and not (top / name).is_symlink():
            yield from _tree(top, name.rstrip("/"), patterns)
        elif patterns.match(name):
            yield name, _file(top / name)


def _tree(root: Path, below: str, patterns: Patterns) -> Iterator[tuple[str, Path]]:
    """Files of a tree, links to files as those files. A symbolic link to a directory is not followed: one that is asked for is refused."""
    for directory, names, files in os.walk(root / below):
        names.sort()
        for name in sorted([*files, *(name for name in names if (Path(directory) / name).is_symlink())]):
            file = Path(directory) / name
            path = file.relative_to(root).as_posix()
            if patterns.match(path):
                yield path, _file(file)


def _file(file: Path) -> Path:
    if file.is_file():
        return file
    if file.is_symlink():
        to = "a directory" if file.is_dir() else "nothing" if not file.exists() else "no regular file"
        todo = "exclude it, or push what it leads to by a step of its own"
        raise RefusedError(f"it is a symbolic link to {to}", where=f"push: {file}", todo=todo)
    raise RefusedError("it is no regular file", where=f"push: {file}", todo="exclude it")


def _refuse_clashes(paths: Iterable[str]) -> None:
    """Raises RefusedError for two names that are one where case, or the way to write an accent, does not count."""
    known: dict[str, str] = {}
    for path in paths:
        parts = path.split("/")
        for end in range(1, len(parts) + 1):
            spelled = "/".join(parts[:end])
            folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", spelled).casefold())
            other = known.setdefault(folded, spelled)
            if other != spelled:
                what = f"'{other}' and '{spelled}' differ only in case or in how an accent is written"
                raise RefusedError(what, where="push", todo="rename or exclude one of them")


def _source(path: str, file: Path) -> Source:
    digest, size = hashlib.sha256(), 0
    try:
        with file.open("rb") as stream:
            while piece := stream.read(PIECE):
                digest.update(piece)
                size += len(piece)
        seen = file.stat()
    except OSError as error:
        raise RefusedError(f"cannot read it: {error.strerror}", where=f"push: {file}", todo="mend its rights, or exclude it") from error
    holes = seen.st_size == size and size > PIECE and seen.st_blocks * BLOCK < size - size // 8  # a file system may compress a little
    return Source(path, file, size, digest.hexdigest(), bool(seen.st_mode & 0o100), seen.st_blocks * BLOCK if holes else size)
