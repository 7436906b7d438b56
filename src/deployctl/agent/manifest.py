"""manifest: what is at a destination now, by hash, and where a bundle for it may be brought."""

from __future__ import annotations

import hashlib
import os
import stat
from typing import Any, Dict, Optional

from . import place
from .faults import Refused

PIECE = 1 << 20


def manifest(session: Any, request: Dict[str, Any]) -> Dict[str, Any]:
    """{"sha256": {path: hash or null}, "incoming": where a bundle may be brought}; request: root, paths, stage (false: only look)."""
    root = os.path.normpath(request["root"])
    if os.path.lexists(root) and not os.path.isdir(root):
        raise Refused("cannot stage there: it is no directory", where=root, todo="correct `to`")
    for directory in sorted({os.path.dirname(path) for path in request["paths"] if place.inside(path)}):
        look_at(root, directory)
    hashes = {path: hash_of(os.path.join(root, path)) for path in request["paths"]}
    if not request.get("stage", True):
        return {"sha256": hashes, "incoming": None}
    spot = session.places.get(root) or place.make(root, session.run, session.home)
    session.places[root] = spot
    return {"sha256": hashes, "incoming": spot.bundle}


def look_at(root: str, directory: str) -> None:
    """Raises Refused for a directory of the destination that a rename from beside it cannot reach, or that leads out of it."""
    there = os.path.join(root, directory)
    if not os.path.isdir(there):
        return
    if not (os.path.realpath(there) + "/").startswith(os.path.realpath(root).rstrip("/") + "/"):
        raise Refused("it leads out of the destination by a symbolic link", where=there, todo="name the directory that it leads to as `to`")
    if os.stat(there).st_dev != os.stat(root).st_dev:
        raise Refused("it lies on another file system than the destination", where=there, todo="push into it by a step of its own")


def hash_of(path: str) -> Optional[str]:
    """SHA-256 of a regular file; None where nothing is. Raises Refused for what a file cannot replace."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return None
    except NotADirectoryError as error:
        raise Refused("a file stands where a directory of it should be", where=path, todo="remove it, or correct `to`") from error
    if not stat.S_ISREG(mode):
        kind = "a symbolic link" if stat.S_ISLNK(mode) else "a directory" if stat.S_ISDIR(mode) else "no regular file"
        raise Refused("it is %s" % kind, where=path, todo="exclude it, or remove it in the target")
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        for piece in iter(lambda: stream.read(PIECE), b""):
            digest.update(piece)
    return digest.hexdigest()
