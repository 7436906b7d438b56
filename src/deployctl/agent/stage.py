"""stage: unpacks a bundle beside its destination and compares every size and hash. A short or broken copy ends here."""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from typing import IO, Any, Dict

from .faults import Fault, Refused
from .place import Place, inside

PIECE = 1 << 20


def stage(session: Any, request: Dict[str, Any]) -> Dict[str, Any]:
    """{"files": count}; request: root, bundle, files [{"path", "size", "sha256", "executable"}] in the bundle's order."""
    place: Place = session.places[os.path.normpath(request["root"])]
    try:
        with gzip.open(request["bundle"], "rb") as packed:
            for file in request["files"]:
                unpack(packed, place, file)
            if packed.read(1):
                raise Fault("the bundle is longer than it should be", where=place.path, todo="nothing was changed; run again")
    except (OSError, EOFError, zlib.error) as error:
        raise Fault("the files did not arrive whole: %s" % error, where=place.path, todo="nothing was changed; run again") from error
    finally:
        if os.path.lexists(request["bundle"]):
            os.unlink(request["bundle"])
    session.staged.extend((place, file["path"]) for file in request["files"])
    return {"files": len(request["files"])}


def unpack(packed: IO[bytes], place: Place, file: Dict[str, Any]) -> None:
    """One file, fsynced, with the mode and owner that it will have. Raises Fault or EOFError."""
    path = os.path.normpath(file["path"])
    if not inside(path):
        raise Fault("the path leaves the destination", where=file["path"], todo="correct the playbook")
    staged = place.new(path)
    os.makedirs(os.path.dirname(staged), mode=0o700, exist_ok=True)
    if os.path.lexists(staged):
        raise Refused("two pushes of this run bring it", where=place.live(path), todo="exclude it in one of them")
    handle = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as stream:
        digest, missing = hashlib.sha256(), file["size"]
        while missing:
            piece = packed.read(min(PIECE, missing))
            if not piece:
                raise EOFError("%s ends %d bytes early" % (path, missing))
            digest.update(piece)
            stream.write(piece)
            missing -= len(piece)
        if digest.hexdigest() != file["sha256"]:
            raise Fault("the bytes that arrived have another hash", where=path, todo="nothing was changed; run again")
        stream.flush()
        dress(stream.fileno(), place.live(path), file["executable"])
        os.fsync(stream.fileno())


def dress(handle: int, live: str, executable: bool) -> None:
    """Gives a staged file the owner and mode of the live one that it replaces; a new file is 0644, or 0755 when executable."""
    try:
        old = os.stat(live)
    except OSError:
        os.fchmod(handle, 0o755 if executable else 0o644)
        return
    if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
        os.fchown(handle, old.st_uid, old.st_gid)
    os.fchmod(handle, (old.st_mode & 0o7777) | (0o100 if executable else 0))
