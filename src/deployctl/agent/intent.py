"""What a run is about to do to the files of a destination, written down before the first rename: what was there, what will be made and
removed. With it a crash in the middle is finished or undone.

    {"run", "had": {path: whether it was there}, "caches": {path of a .py: [its compiled files]},
     "made": [directories that were missing], "emptied": {directory that may be left empty: [mode, uid, gid]}}
"""

from __future__ import annotations

import os
import stat
from typing import Any, Dict, Iterator, List, Set

from .place import Place
from .state import read_json, write_json

Intent = Dict[str, Any]
CACHE = "__pycache__"


def read(place: Place) -> Intent:
    """The intent of a run, empty where none was written."""
    empty: Intent = {"run": place.run, "had": {}, "caches": {}, "made": [], "emptied": {}}
    return {**empty, **(read_json(place.intent) or {})}


def write_if_possible(place: Place, intent: Intent) -> None:
    """Writes it; on a full disk the earlier one stays, by which going back can be repeated as well."""
    try:
        write_json(place.intent, intent)
    except OSError:
        pass


def extend(place: Place, intent: Intent, paths: List[str], remove: List[str]) -> Set[str]:
    """Adds what is not in it yet, and writes it. The paths that are new to it."""
    fresh = {path for path in (*paths, *remove) if path not in intent["had"]}
    if not fresh:
        return fresh
    going = {path for path in remove if path in fresh and os.path.lexists(place.live(path))}
    for path in fresh.difference(remove) | going:
        intent["had"][path] = os.path.lexists(place.live(path))
    for path in (path for path in fresh if path.endswith(".py")):
        intent["caches"][path] = list(caches_of(place, path, orphan=path in going))
        intent["had"].update(dict.fromkeys(intent["caches"][path], True))
    missing = {above for path in paths for above in _above(path) if not os.path.lexists(place.live(above))}
    intent["made"] = sorted({*intent["made"], *missing})
    for path in going:
        compiled = [os.path.join(os.path.dirname(path), CACHE)] if path.endswith(".py") else []
        for directory in (*compiled, *_above(path)):
            if directory not in intent["emptied"] and os.path.isdir(place.live(directory)):
                seen = os.stat(place.live(directory))
                intent["emptied"][directory] = [stat.S_IMODE(seen.st_mode), seen.st_uid, seen.st_gid]
    write_json(place.intent, intent)
    return fresh


def caches_of(place: Place, path: str, orphan: bool = False) -> Iterator[str]:
    """The compiled files of a .py; with `orphan` also the one beside it, which Python takes when the source is gone. Source: PEP 3147."""
    directory, name = os.path.split(path)
    stem = name[: -len(".py")]
    try:
        names = sorted(os.listdir(place.live(os.path.join(directory, CACHE))))
    except OSError:
        names = []
    for found in names:
        tags = found[len(stem) + 1 : -len(".pyc")].split(".")  # "cpython-311", or with "opt-1"
        of_this = len(tags) == 1 or (len(tags) == 2 and tags[1].startswith("opt-"))
        if found.startswith(stem + ".") and found.endswith(".pyc") and of_this:
            yield os.path.join(directory, CACHE, found)
    if orphan and os.path.isfile(place.live(path + "c")):
        yield path + "c"


def remake(place: Place, intent: Intent, directory: str) -> None:
    """Makes a directory again that was removed when it was empty, as it was."""
    for above in reversed([directory, *_above(directory)]):
        if above and not os.path.lexists(place.live(above)):
            mode, uid, gid = intent["emptied"].get(above, [0o755, -1, -1])
            os.mkdir(place.live(above))
            os.chown(place.live(above), uid, gid)
            os.chmod(place.live(above), mode)


def _above(path: str) -> Iterator[str]:
    """The directories above a path, the nearest first, without the destination itself."""
    while os.path.dirname(path):
        path = os.path.dirname(path)
        yield path
