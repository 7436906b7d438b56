"""stage: unpacks a bundle beside its destination and compares every size and hash. A short or broken copy ends here.

A bundle is one gzip stream of the files that it pays for, and after it the bytes of the others as they are. Memory stays flat.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from typing import IO, Any, Callable, Dict, Iterator, List, Optional

from . import dress, state
from .faults import Fault
from .place import ABOUT, Place, inside

PIECE = 1 << 20


def stage(session: Any, request: Dict[str, Any]) -> Dict[str, Any]:
    """{"files": count}; request: root, bundle (where it lies, null when it follows on the wire), packed (how many of the files are in its
    gzip stream), files [{"path", "size", "sha256", "executable", "sparse", "here"}] in its order, owner, group, mode.

    A file that is `here` is not in the bundle: its bytes are those of the live one.
    """
    place: Place = session.places[os.path.normpath(request["root"])]
    heed = session.wire.heed
    pieces = session.wire.pieces() if request["bundle"] is None else _read(request["bundle"])
    try:
        _unpack(Bundle(lambda: next(pieces, b"")), place, request, heed)
        sync(place, [file["path"] for file in request["files"]], heed)
    except (OSError, EOFError, zlib.error) as error:
        raise Fault("the files did not arrive whole: %s" % error, where=place.path, todo="nothing was changed; run again") from error
    finally:
        _finish(session, request["bundle"], pieces)
    session.staged.extend((place, file["path"]) for file in request["files"])
    about = place.about()
    about["files"].update((file["path"], {"size": file["size"], "sha256": file["sha256"]}) for file in request["files"])
    state.write_json(os.path.join(place.path, ABOUT), about)
    return {"files": len(request["files"])}


def sync(place: Place, paths: List[str], heed: Callable[[], None]) -> None:
    """Makes the files durable when all are written: one by one each would wait for the disk. What `heed` raises ends it."""
    for path in paths:
        heed()
        try:
            handle = os.open(place.new(path), os.O_RDONLY | os.O_CLOEXEC)
        except PermissionError:  # its mode keeps even us out
            return os.sync()
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    return None


def _finish(session: Any, bundle: Optional[str], pieces: Iterator[bytes]) -> None:
    """Removes the bundle, or takes what still comes of it off the wire: it is no request."""
    if bundle is not None:
        if os.path.lexists(bundle):
            os.unlink(bundle)
        return
    for told, _ in enumerate(pieces):
        if not told:
            session.wire.send({"enough": True})  # the controller need not send the rest


def _read(path: str) -> Iterator[bytes]:
    with open(path, "rb") as stream:
        yield from iter(lambda: stream.read(PIECE), b"")


class Bundle:
    """The bytes of a bundle, out of pieces; an empty piece is its end."""

    def __init__(self, more: Callable[[], bytes]) -> None:
        self._more, self._rest = more, b""
        self._inflate: Any = None

    def begin_packed(self) -> None:
        """What follows is a gzip stream."""
        self._inflate = zlib.decompressobj(31)

    def end_packed(self) -> None:
        """Raises EOFError or zlib.error when the stream does not end here, whole."""
        if self._inflate is not None and self.read(1):
            raise EOFError("the bundle is longer than it should be")
        if self._inflate is not None:
            raise EOFError("the bundle ends early")

    def read(self, most: int) -> bytes:
        """Up to `most` bytes; none at the end of the gzip stream, or of the bundle."""
        while True:
            if not self._rest and not (self._inflate is not None and self._inflate.eof):
                self._rest = self._more()
            if self._inflate is None:
                found, self._rest = self._rest[:most], self._rest[most:]
                return found
            if self._inflate.eof:
                self._rest, self._inflate = self._inflate.unused_data, None
                return b""
            if not self._rest:
                return b""
            found = self._inflate.decompress(self._rest, most)
            self._rest = self._inflate.unconsumed_tail
            if found:
                return bytes(found)


def _unpack(bundle: Bundle, place: Place, request: Dict[str, Any], heed: Callable[[], None]) -> None:
    def heeding(read: Callable[[int], bytes]) -> Callable[[int], bytes]:
        def piece(most: int) -> bytes:
            heed()
            return read(most)

        return piece

    wish = dress.wish_of(request)
    files = request["files"]
    if request["packed"]:
        bundle.begin_packed()
    for index, file in enumerate(files):
        if index == request["packed"]:
            bundle.end_packed()
        path = os.path.normpath(file["path"])
        if not inside(path):
            raise Fault("the path leaves the destination", where=file["path"], todo="correct the playbook")
        if file.get("here"):
            with open(place.live(path), "rb") as live:
                _write(heeding(live.read), place, dict(file, path=path), wish)
        else:
            _write(heeding(bundle.read), place, dict(file, path=path), wish)
    if request["packed"] == len(files):
        bundle.end_packed()
    if bundle.read(1):
        raise Fault("the bundle is longer than it should be", where=place.path, todo="nothing was changed; run again")


def _write(read: Callable[[int], bytes], place: Place, file: Dict[str, Any], wish: dress.Wish) -> None:
    """One file with the mode and owner that it will have. Raises Fault or EOFError."""
    staged = place.new(file["path"])
    os.makedirs(os.path.dirname(staged), mode=0o700, exist_ok=True)
    handle = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as stream:
        if _copy(read, stream, file) != file["sha256"]:
            raise Fault("the bytes that arrived have another hash", where=file["path"], todo="nothing was changed; run again")
        stream.flush()
        dress.put_on(stream.fileno(), place.live(file["path"]), wish, file["executable"])
        old = _seen(place.live(file["path"]))
        if old is not None and int(old.st_mtime) == int(os.fstat(stream.fileno()).st_mtime):
            # Compiled code is known by its source's size and second: another second, so that no old one passes for that of this file.
            os.utime(stream.fileno(), (old.st_mtime - 1, old.st_mtime - 1))


def _copy(read: Callable[[int], bytes], stream: IO[bytes], file: Dict[str, Any]) -> str:
    """The hash of what was copied. A sparse file keeps its holes: whole pieces of zeros are not written."""
    digest, missing = hashlib.sha256(), file["size"]
    while missing:
        piece = read(min(PIECE, missing))
        if not piece:
            raise EOFError("%s ends %d bytes early" % (file["path"], missing))
        digest.update(piece)
        if file.get("sparse") and piece.count(0) == len(piece):
            stream.seek(len(piece), os.SEEK_CUR)
        else:
            stream.write(piece)
        missing -= len(piece)
    stream.truncate(file["size"])
    return digest.hexdigest()


def _seen(path: str) -> Optional[os.stat_result]:
    try:
        return os.stat(path)
    except OSError:
        return None
