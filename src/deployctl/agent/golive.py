"""golive and goback: the files of a run take their places together, and give them back.

The old file is hard-linked into the release, the new one renamed over it: no name is ever missing. A file that goes is renamed into the
release. What was there is written down before the first rename (intent.py), so that every act can be repeated or taken back after a crash.
"""

from __future__ import annotations

import os
import stat
from typing import Any, Dict, List

from . import intent as intents
from .faults import Fault
from .place import Place
from .shared import make_directory
from .state import sync_directory

Files = Dict[str, Any]  # {"root", "paths", and where it is asked for "remove", "owner", "group" (ids of new directories)}


def golive(job: Any, operation: Dict[str, Any]) -> None:
    """Emits `live`; operation: sets [Files]."""
    count = removed = 0
    for files in operation["sets"]:
        place = Place(files["root"], job.run)
        try:
            _go(place, files)
        except OSError as error:
            where = str(error.filename or place.root)
            raise Fault("cannot go live: %s" % error.strerror, where=where, todo="mend what stands in the way") from error
        count += len(files["paths"])
        removed += len(files.get("remove", []))
        place.prune()
    job.emit("live", files=count, removed=removed, sets=operation["sets"], sync=True)


def _go(place: Place, files: Files) -> None:
    paths: List[str] = files["paths"]
    intent = intents.read(place)
    fresh = intents.extend(place, intent, paths, files.get("remove", []))
    waiting = []
    for path in paths:
        if os.path.lexists(place.new(path)):
            waiting.append(path)
        elif path in fresh or not os.path.lexists(place.live(path)):  # else it went live before a crash
            raise Fault("what was staged is gone", where=place.new(path), todo="see who removes files there, then run again")
    _keep(place, intent, waiting)
    for path in waiting:
        _make_directories(place, os.path.dirname(path), files)
    for path in waiting:
        os.rename(place.new(path), place.live(path))
    for path in files.get("remove", []):
        _take_away(place, path)
    for path in (path for path in (*paths, *files.get("remove", [])) if path in intent["caches"]):
        for cache in intent["caches"][path]:
            _take_away_cache(place, cache)
    for directory in sorted(intent["emptied"], key=len, reverse=True):
        _remove_if_empty(place.live(directory))
    _sync(place, [*paths, *files.get("remove", [])])


def _keep(place: Place, intent: intents.Intent, paths: List[str]) -> None:
    """Links the live files into the release, durably, before the first of them is replaced."""
    directories = set()
    for path in paths:
        if intent["had"][path] and not os.path.lexists(place.old(path)):
            directories.add(make_directory(os.path.dirname(place.old(path))))
            os.link(place.live(path), place.old(path))
    for directory in directories:
        sync_directory(directory)


def _make_directories(place: Place, directory: str, files: Files) -> None:
    """Those that are missing for a file, 0755, with the owner and group that were asked for."""
    missing = []
    while directory and not os.path.lexists(place.live(directory)):
        missing.append(directory)
        directory = os.path.dirname(directory)
    for made in reversed(missing):
        os.mkdir(place.live(made), 0o755)
        os.chmod(place.live(made), os.stat(place.live(made)).st_mode & stat.S_ISGID | 0o755)  # whatever our umask is
        if files.get("owner") is not None or files.get("group") is not None:
            os.chown(place.live(made), *(-1 if files.get(key) is None else files[key] for key in ("owner", "group")))


def _take_away(place: Place, path: str) -> None:
    if os.path.lexists(place.live(path)) and not os.path.lexists(place.old(path)):
        make_directory(os.path.dirname(place.old(path)))
        os.rename(place.live(path), place.old(path))


def _take_away_cache(place: Place, path: str) -> None:
    """Where it cannot be kept it is removed; where that cannot be done either, the time of the new file makes it worthless (stage.py)."""
    try:
        _take_away(place, path)
    except OSError:
        try:
            os.unlink(place.live(path))
        except OSError:
            pass


def goback(job: Any, operation: Dict[str, Any]) -> None:
    """Emits `back`: every file of the sets is what it was before this run, and those that the run brought are gone."""
    count = 0
    for files in operation["sets"]:
        place = Place(files["root"], job.run)
        if not os.path.lexists(place.intent):
            continue  # it never began to go live
        intent = intents.read(place)
        try:
            back = [path for path in files["paths"] if _back(place, intent, path, brought=True)]
            back += [path for path in files.get("remove", []) if _back(place, intent, path, brought=False)]
            _tidy(place, intent)
            _sync(place, back)
            count += len(back)
        except OSError as error:
            where = str(error.filename or place.root)
            raise Fault("cannot go back: %s" % error.strerror, where=where, todo="put it back by hand") from error
        if intent["had"]:
            intents.write_if_possible(place, intent)  # another push into the same directory is still to go back
        else:
            place.remove()
    job.emit("back", files=count, sets=operation["sets"], sync=True)


def _back(place: Place, intent: intents.Intent, path: str, brought: bool) -> bool:
    """Whether there was something to do. The release's link is renamed over the new file, so the name is never missing.

    Compiled files come first: as long as the file itself is not back, a crash in between leads here again.
    """
    had = intent["had"].pop(path, True)
    fresh = brought and not had and not os.path.lexists(place.new(path)) and os.path.lexists(place.live(path))
    changed = fresh or os.path.lexists(place.old(path))
    caches = intent["caches"].pop(path, [])
    for cache in intents.caches_of(place, path) if changed and path.endswith(".py") else ():
        if cache not in caches or os.path.lexists(place.old(cache)):
            os.unlink(place.live(cache))  # of the new file
    for cache in caches:
        intent["had"].pop(cache, None)
        _put_back(place, intent, cache)
    if fresh:
        os.unlink(place.live(path))
    elif changed:
        _put_back(place, intent, path)
    return changed


def _put_back(place: Place, intent: intents.Intent, path: str) -> None:
    if os.path.lexists(place.old(path)):
        intents.remake(place, intent, os.path.dirname(path))
        os.rename(place.old(path), place.live(path))


def _tidy(place: Place, intent: intents.Intent) -> None:
    """Removes the directories that the run made, as far as they are empty."""
    for directory in sorted(intent["made"], key=len, reverse=True):
        _remove_if_empty(place.live(os.path.join(directory, "__pycache__")))
        _remove_if_empty(place.live(directory))


def _remove_if_empty(directory: str) -> None:
    try:
        os.rmdir(directory)
    except OSError:
        pass


def _sync(place: Place, paths: List[str]) -> None:
    """Makes the new names of these paths durable, each directory once."""
    for directory in {_nearest(above) for above in {os.path.dirname(place.live(path)) for path in paths}}:
        sync_directory(directory)


def _nearest(directory: str) -> str:
    """The directory, or the nearest one above it that is there."""
    return directory if os.path.isdir(directory) else _nearest(os.path.dirname(directory))
