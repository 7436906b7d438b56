"""A bundle: the bytes of several files as one stream. First one gzip stream of those for which it pays, then the others as they are.

Sizes and hashes travel apart, in the request that unpacks it. Memory stays flat: pieces are made one after the other.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from deployctl.errors import RefusedError
from deployctl.steps.sources import Source
from deployctl.values import show_size

PIECE = 1 << 18  # bytes read at a time, and more than any piece that leaves
SAMPLE = 1 << 16  # bytes of a file that are tried
SMALL = 1 << 12  # bytes up to which nobody asks
LEVEL = 3


@dataclass(frozen=True)
class Bundle:
    """The files in the order of their bytes; the first `packed` of them are in the gzip stream."""

    files: tuple[Source, ...]
    packed: int

    def pieces(self, progress: Callable[[int], None] = lambda _: None) -> Iterator[bytes]:
        """The bundle's bytes, at most 1 MiB at a time. `progress` hears how many bytes of the files are in it so far.

        Raises RefusedError when a file changed since it was hashed.
        """
        done = 0
        stream = zlib.compressobj(LEVEL, zlib.DEFLATED, 31)
        for index, source in enumerate(self.files):
            if index == self.packed and index:
                yield from _cut(stream.flush())
            for piece in _read(source):
                done += len(piece)
                yield from _cut(stream.compress(piece)) if index < self.packed else (piece,)
                progress(done)
        if self.files and self.packed == len(self.files):
            yield from _cut(stream.flush())


def arrange(sources: Sequence[Source]) -> Bundle:
    """The bundle of the files: what can be made smaller comes first."""
    pays = {source.path for source in sources if _pays(source)}
    ordered = sorted(sources, key=lambda source: source.path not in pays)
    return Bundle(tuple(ordered), len(pays))


def _cut(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), PIECE):
        yield data[start : start + PIECE]


def _pays(source: Source) -> bool:
    """Whether a part out of its beginning and one out of its middle get smaller by a tenth."""
    if source.size <= SMALL:
        return True
    try:
        with source.file.open("rb") as stream:
            sample = stream.read(SAMPLE)
            stream.seek(source.size // 2)
            sample += stream.read(SAMPLE)
    except OSError as error:
        raise _unreadable(source, error) from error
    return len(zlib.compress(sample, 1)) < 0.9 * len(sample)


def _read(source: Source) -> Iterator[bytes]:
    sent = 0
    try:
        with source.file.open("rb") as stream:
            while piece := stream.read(PIECE):
                sent += len(piece)
                if sent > source.size:
                    break
                yield piece
    except OSError as error:
        raise _unreadable(source, error) from error
    if sent != source.size:
        what = f"it changed while it was read ({show_size(source.size)} before)"
        raise RefusedError(what, where=f"push: {source.file}", todo="run again when nobody writes it")


def _unreadable(source: Source, error: OSError) -> RefusedError:
    return RefusedError(f"cannot read it: {error.strerror}", where=f"push: {source.file}", todo="run again")
