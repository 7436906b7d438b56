"""restore: the files of an earlier run, out of what the later ones have kept, staged like those of a push; and what it had launched."""

from __future__ import annotations

import os
import shutil
import stat
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from . import intent as intents
from . import manifest, pieces, runs, stage, state
from .faults import Refused
from .place import ABOUT, Place

Facts = Dict[str, Any]


class Past(NamedTuple):
    """One run, as its events tell it."""

    run: str
    launched: Optional[Facts]  # the last `launched`, of a run that ended well
    found: Optional[Facts]  # the process that ran before
    live: List[str]  # destinations where files went live, and were not taken back


def restore(session: Any, request: Dict[str, Any]) -> Facts:
    """{"to" (a run, or null: what ran before the first one), "undone": [runs], "argv", "directory", "flags", "sets": [{"root", "paths",
    "remove"}]}.

    request: to (a run; null for the one before the last launch), stage (false: only look). Raises Refused.
    """
    home = session.home or session.settle(request)
    pasts = [_past(home, run) for run in state.runs(home) if run != session.run]
    current = (state.read_json(home.record) or {}).get("run")
    now = next((past for past in pasts if past.run == current), None)
    if now is None:
        what = "deployctl has launched nothing here, so there is nothing to go back to"
        raise Refused(what, where=home.name, todo="see `deployctl status`")
    to = _target(pasts, now, request.get("to"), home.name)
    undone = [past for past in pasts if past.live and (past.run > to.run if to else past.run >= now.run)]
    launch = to.launched if to else _by_hand(now, home.name)
    assert launch is not None
    files = _files(undone)
    sets = [_set(session, root, found, bool(request.get("stage"))) for root, found in sorted(files.items())]
    sets = [one for one in sets if one["paths"] or one["remove"]]
    return {
        "to": to.run if to else None, "undone": [past.run for past in undone], "argv": launch["argv"],
        "directory": launch.get("directory"), "flags": launch.get("flags") or {}, "sets": sets,
    }  # fmt: skip


def _past(home: state.Home, run: str) -> Past:
    launched = found = None
    live: List[str] = []
    well = False
    for event in runs.events_of(home, run):
        if event["what"] == "launched":
            launched = event
        elif event["what"] == "found":
            found = event["process"]
        elif event["what"] == "live":
            live = [one["root"] for one in event["sets"]]
        elif event["what"] == "back":
            live = []
        elif event["what"] == "end":
            well = event["status"] == 0
    return Past(run, launched if well else None, found, live)


def _target(pasts: List[Past], now: Past, wanted: Optional[str], workload: str) -> Optional[Past]:
    """The run to go back to; None for what ran before the first launch."""
    able = [past for past in pasts if past.launched and past.run < now.run]
    if wanted is None:
        return able[-1] if able else None
    found = next((past for past in able if past.run == wanted), None)
    if found is None:
        known = ", ".join(past.run for past in able[-5:]) or "none"
        raise Refused("run %s is none to go back to" % wanted, where=workload, todo="these are: %s" % known)
    return found


def _by_hand(now: Past, workload: str) -> Facts:
    """What ran before the first launch, as the run that replaced it saw it."""
    if now.found is None:
        raise Refused("nothing ran before run %s" % now.run, where=workload, todo="stop it with `deployctl stop`, or start another one")
    return {"argv": now.found["argv"]}


def _files(undone: List[Past]) -> Dict[str, Dict[str, Optional[str]]]:
    """By destination and path: where the earlier file is kept, or None where there was none. The oldest of the undone runs has the word."""
    found: Dict[str, Dict[str, Optional[str]]] = {}
    for past in reversed(undone):
        for root in past.live:
            place = Place(root, past.run)
            if not os.path.lexists(place.intent):
                raise Refused("what run %s replaced is kept no more" % past.run, where=root, todo="push the files that are wanted")
            intent = intents.read(place)
            compiled = {cache for caches in intent["caches"].values() for cache in caches}
            for path, had in intent["had"].items():
                if path not in compiled:
                    found.setdefault(root, {})[path] = place.old(path) if had else None
    return found


def _set(session: Any, root: str, files: Dict[str, Optional[str]], staged: bool) -> Facts:
    """What goes live at one destination; staged if it is asked for."""
    heed = session.wire.heed
    live = {path: os.path.join(root, path) for path in files}
    paths = sorted(path for path, kept in files.items() if kept is not None and not _same(kept, live[path], heed))
    remove = sorted(path for path, kept in files.items() if kept is None and os.path.lexists(live[path]))
    if staged and (paths or remove):
        manifest.make_place(session, {"root": root, "remove": remove})
        place: Place = session.places[root]
        for path in paths:
            _copy(str(files[path]), place.new(path), heed)
        stage.sync(place, paths, heed)
        session.staged.extend((place, path) for path in paths)
        about = place.about()
        sizes = {path: os.lstat(place.new(path)).st_size for path in paths}
        hashes = {path: manifest.hash_of(place.new(path), size, heed) for path, size in sizes.items()}
        about["files"].update((path, {"size": size, "sha256": hashes[path]}) for path, size in sizes.items())
        state.write_json(os.path.join(place.path, ABOUT), about)
    return {"root": root, "paths": paths, "remove": remove}


def _same(kept: str, live: str, heed: Callable[[], None]) -> bool:
    try:
        one, other = os.lstat(kept), os.lstat(live)
        if not (stat.S_ISREG(one.st_mode) and stat.S_ISREG(other.st_mode) and one.st_size == other.st_size):
            return False
        with open(kept, "rb") as old, open(live, "rb") as now:
            return pieces.begins(now, old, heed)
    except OSError:
        return False


def _copy(kept: str, new: str, heed: Callable[[], None]) -> None:
    """The file as it was, owner, mode and times included; the release keeps its own."""
    os.makedirs(os.path.dirname(new), mode=0o700, exist_ok=True)
    seen = os.lstat(kept)
    if stat.S_ISREG(seen.st_mode):
        with open(kept, "rb") as old, open(new, "xb") as copy:
            copy.writelines(pieces.of(old, heed))
        shutil.copystat(kept, new)
    else:
        shutil.copy2(kept, new, follow_symlinks=False)
    if os.geteuid() == 0:
        os.chown(new, seen.st_uid, seen.st_gid, follow_symlinks=False)
