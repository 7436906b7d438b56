"""releases: what is kept for going back, and whether the live files are still those that a run brought. forget: all of a workload goes."""

from __future__ import annotations

import os
import shutil
import stat
from typing import Any, Callable, Dict, Iterator, List, Optional, Set

from . import intent as intents
from . import lock, manifest, procfs, runs, state
from .faults import Refused
from .place import Place, places

Release = Dict[str, Any]


def releases(session: Any, request: Dict[str, Any]) -> Dict[str, Any]:
    """{"releases": [{"run", "workload", "root", "at", "who", "files", "size", "drift": [{"path", "what"}]}]}, the newest first.

    request: workload (all of them without it), state. size is what only the release holds, in bytes. drift names what a run brought, no
    later one changed, and somebody did.
    """
    found: List[Release] = []
    for home in runs.homes(session, request):
        if request.get("workload") in (None, home.name):
            for root in state.roots(home):
                known: Set[str] = set()
                found += [_release(place, home.name, known, session.wire.heed) for place in reversed(_kept(home, root))]
    return {"releases": sorted(found, key=lambda item: str(item["run"]), reverse=True)}


def _kept(home: state.Home, root: str) -> List[Place]:
    """The places of the workload's runs that went live, the oldest first."""
    return [place for place in _places(home, root) if os.path.lexists(place.intent)]


def _places(home: state.Home, root: str) -> Iterator[Place]:
    for place in places(root):
        if place.about().get("workload", home.name if os.path.lexists(home.events(place.run)) else None) == home.name:
            yield place


def _release(place: Place, workload: str, known: Set[str], heed: Callable[[], None]) -> Release:
    about = place.about()
    intent = intents.read(place)
    compiled = {cache for caches in intent["caches"].values() for cache in caches}
    drift = [found for found in (_drift(place, path, wanted, heed) for path, wanted in _brought(about) if path not in known) if found]
    known.update(path for path, _ in _brought(about))
    return {
        "run": place.run, "workload": workload, "root": place.root, "at": about.get("at"), "who": about.get("who"),
        "files": sum(had for path, had in intent["had"].items() if path not in compiled), "size": _size(place.old()), "drift": drift,
    }  # fmt: skip


def _brought(about: Dict[str, Any]) -> Iterator[Any]:
    """(path, {"size", "sha256"}), and (path, None) for what was removed."""
    yield from about.get("files", {}).items()
    yield from ((path, None) for path in about.get("gone", []))


def _drift(place: Place, path: str, wanted: Optional[Dict[str, Any]], heed: Callable[[], None]) -> Optional[Dict[str, str]]:
    live = place.live(path)
    if wanted is None:
        return {"path": path, "what": "is there again"} if os.path.lexists(live) else None
    try:
        mode = os.lstat(live).st_mode
    except OSError:
        return {"path": path, "what": "is gone"}
    if not stat.S_ISREG(mode):
        return {"path": path, "what": "is no regular file any more"}
    try:
        same = manifest.hash_of(live, wanted["size"], heed) == wanted["sha256"]
    except Refused:
        return {"path": path, "what": "cannot be read"}
    return None if same else {"path": path, "what": "was changed"}


def _size(directory: str) -> int:
    """Bytes of the files that have no other name any more."""
    total = 0
    for above, _, names in os.walk(directory):
        seen = [os.lstat(os.path.join(above, name)) for name in names]
        total += sum(item.st_size for item in seen if item.st_nlink == 1)
    return total


def forget(session: Any, request: Dict[str, Any]) -> Dict[str, Any]:
    """{"releases", "runs": counts}: removes what the target keeps of a workload. Raises Busy, or Refused while it runs or has a run without
    an end. request: workload, who, state.
    """
    home = state.Home(state.directory(request.get("state")), request["workload"])
    if request["workload"] not in state.names(home.base):
        raise Refused("nothing is known of '%s' here" % request["workload"], where="forget", todo="`deployctl status` lists what is")
    session.lock = lock.take(home.lock, dict(request["who"], run="none, it is forgotten"))
    left = runs.unfinished(home)
    if left:
        raise Refused("run %s has no end" % left["run"], where=home.name, todo="bring it to one: `deployctl resume %s`" % left["run"])
    record = state.read_json(home.record)
    if record is not None and procfs.same(record):
        raise Refused("it runs as pid %d" % record["pid"], where=home.name, todo="stop it first: forgotten, it could be started twice")
    gone = 0
    for root in state.roots(home):
        for place in list(_places(home, root)):
            gone += os.path.lexists(place.intent)
            place.remove()
    answer = {"releases": gone, "runs": len(state.runs(home))}
    shutil.rmtree(home.runs)
    shutil.rmtree(home.path)  # the lock with it; who waited for it looks whether it is still the one (lock.py)
    return answer
