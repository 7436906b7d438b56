"""manifest: what is at a destination now, by hash, and whether files can be put there. It only looks; `place` makes the place for them."""

from __future__ import annotations

import hashlib
import os
import time
from typing import Any, Callable, Dict, List, Optional

from . import dress, listing, obstacles, pieces, place, state
from .faults import Refused


def manifest(session: Any, request: Dict[str, Any]) -> Dict[str, Any]:
    """{"sha256": {path: hash, "" for another size, or null}, "undressed": [paths], "owner", "group": ids or null, "listed": [paths]}.

    request: root, files [{"path", "size", "executable"}], owner, group, mode (texts or null), list (whether every file below the root is
    asked for), keep (absolute paths that are never listed). undressed are those whose owner or mode is not what it should be.
    """
    root = os.path.normpath(request["root"])
    files: List[Dict[str, Any]] = request["files"]
    obstacles.look_at_root(root)
    wish = dress.wish_of(request)
    _claim(session, root, [file["path"] for file in files])
    listed = listing.below(root, request.get("keep", ()), session.wire.heed) if request.get("list") else []
    obstacles.look_at_files(root, [file["path"] for file in files], keeps_owner=wish.owner is None)
    found: Dict[str, Optional[str]] = {}
    undressed = []
    for file in files:
        live = os.path.join(root, file["path"])
        found[file["path"]] = hash_of(live, file["size"], session.wire.heed)
        if found[file["path"]] is not None and not dress.fits(os.lstat(live), wish, file["executable"]):
            undressed.append(file["path"])
    return {"sha256": found, "undressed": undressed, "owner": wish.owner, "group": wish.group, "listed": listed}


def make_place(session: Any, request: Dict[str, Any]) -> Dict[str, Any]:
    """{"incoming": where a bundle may be brought, "free": bytes, "inodes": count or null}; request: root, remove, stage (false: only look).

    remove are the paths that are to go when the others go live. Raises Refused.
    """
    root = os.path.normpath(request["root"])
    going = request.get("remove", [])
    obstacles.look_at_files(root, going, going=True)
    for path in going:
        whole = place.whole(root, path)
        if whole in session.brought:
            raise Refused(_CONTRADICTION, where=whole, todo="exclude it in the push that has `delete`")
        session.leaving.add(whole)
    if not request.get("stage", True):
        return dict(place.room(root), incoming=None)
    spot = session.places.get(root) or place.make(root, session.run, session.home)
    session.places[root] = spot
    state.add_root(session.home, root)
    _describe(session, spot, going)
    return dict(place.room(root), incoming=spot.bundle)


def _describe(session: Any, spot: place.Place, going: List[str]) -> None:
    """Writes down whose place it is; `stage` adds the files."""
    about = spot.about() or {"run": session.run, "workload": session.workload["name"], "who": session.who, "files": {}, "gone": []}
    about.update(at=round(time.time(), 3), gone=[*about["gone"], *going])
    path = os.path.join(spot.path, place.ABOUT)
    state.write_json(path, about)
    try:
        os.link(path, path + state.NEW)
        os.unlink(path + state.NEW)
    except OSError as error:
        raise Refused("its file system makes no hard links: %s" % error.strerror, where=spot.root, todo="push to another one") from error


_CONTRADICTION = "one push of this run brings it, another one removes it"


def _claim(session: Any, root: str, paths: List[str]) -> None:
    """Raises Refused for a path that another push of the run brings or removes."""
    for path in paths:
        if place.NAME in path.split("/"):
            raise Refused("'%s' is the name of our own directory" % place.NAME, where=path, todo="exclude it")
        if not place.inside(path):
            raise Refused("the path leaves the destination", where=path, todo="correct the playbook")
        whole = place.whole(root, path)
        if whole in session.brought:
            raise Refused("two pushes of this run bring it", where=whole, todo="exclude it in one of them")
        if whole in session.leaving:
            raise Refused(_CONTRADICTION, where=whole, todo="exclude it in the push that has `delete`")
        session.brought.add(whole)


def hash_of(path: str, size: int, heed: Callable[[], None]) -> Optional[str]:
    """SHA-256 of a regular file; "" where its size is another one; None where nothing is. What `heed` raises ends it."""
    try:
        if os.lstat(path).st_size != size:
            return ""
    except FileNotFoundError:
        return None
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as stream:
            for piece in pieces.of(stream, heed):
                digest.update(piece)
    except OSError as error:
        raise Refused("it cannot be read: %s" % error.strerror, where=path, todo="mend its rights") from error
    return digest.hexdigest()
