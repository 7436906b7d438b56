"""A file's bytes piece by piece, so that whoever reads a large one hears in between that nobody waits for it any more."""

from __future__ import annotations

from typing import IO, Callable, Iterator

PIECE = 1 << 20  # bytes


def of(stream: IO[bytes], heed: Callable[[], None]) -> Iterator[bytes]:
    """The bytes to the end of the stream; `heed` is asked before each piece, and may raise."""
    while True:
        heed()
        piece = stream.read(PIECE)
        if not piece:
            return
        yield piece


def begins(whole: IO[bytes], part: IO[bytes], heed: Callable[[], None]) -> bool:
    """Whether `whole` begins with all the bytes of `part`."""
    return all(whole.read(len(piece)) == piece for piece in of(part, heed))
