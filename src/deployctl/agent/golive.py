"""golive and goback: the files of a run take their places together, and give them back.

The old file is hard-linked into the release, the new one renamed over it: no name is ever missing. What was there is written down
before the first rename, so that every act can be repeated or taken back after a crash.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List

from .faults import Fault
from .place import Place
from .shared import make_directory
from .state import read_json, sync_directory, write_json


def golive(job: Any, operation: Dict[str, Any]) -> None:
    """Emits `live`; operation: sets [{"root", "paths"}]."""
    count = 0
    for files in operation["sets"]:
        place = Place(files["root"], job.run)
        try:
            _go(place, files["paths"])
        except OSError as error:
            where = str(error.filename or place.root)
            raise Fault("cannot go live: %s" % error.strerror, where=where, todo="mend what stands in the way") from error
        count += len(files["paths"])
        place.prune()
    job.emit("live", files=count, sets=operation["sets"], sync=True)


def _go(place: Place, paths: List[str]) -> None:
    intent = read_json(place.intent) or {"run": place.run, "had": {}}
    fresh = [path for path in paths if path not in intent["had"]]
    if fresh:
        intent["had"].update((path, os.path.lexists(place.live(path))) for path in fresh)
        write_json(place.intent, intent)
    for path in paths:
        if not os.path.lexists(place.new(path)):
            if path in fresh or not os.path.lexists(place.live(path)):
                raise Fault("what was staged is gone", where=place.new(path), todo="see who removes files there, then run again")
            continue  # it went live before a crash
        os.makedirs(os.path.dirname(place.live(path)), exist_ok=True)
        if intent["had"][path] and not os.path.lexists(place.old(path)):
            make_directory(os.path.dirname(place.old(path)))
            os.link(place.live(path), place.old(path))
        os.rename(place.new(path), place.live(path))
    for directory in {os.path.dirname(place.live(path)) for path in paths}:
        sync_directory(directory)


def goback(job: Any, operation: Dict[str, Any]) -> None:
    """Emits `back`: every file of the sets is what it was before this run, and those that the run brought are gone."""
    count = 0
    for files in operation["sets"]:
        place = Place(files["root"], job.run)
        intent = read_json(place.intent)
        if intent is None:
            continue  # it never began to go live
        try:
            for path in files["paths"]:
                count += _back(place, path, intent["had"].pop(path, True))
        except OSError as error:
            where = str(error.filename or place.root)
            raise Fault("cannot go back: %s" % error.strerror, where=where, todo="put it back by hand") from error
        if intent["had"]:
            write_json(place.intent, intent)  # another push into the same directory is still to go back
        else:
            place.remove()
    job.emit("back", files=count, sets=operation["sets"], sync=True)


def _back(place: Place, path: str, had: bool) -> int:
    """Whether there was something to do. The release's link is renamed over the new file, so the name is never missing."""
    if os.path.lexists(place.old(path)):
        os.rename(place.old(path), place.live(path))
    elif not had and not os.path.lexists(place.new(path)) and os.path.lexists(place.live(path)):
        os.unlink(place.live(path))
    else:
        return 0
    sync_directory(os.path.dirname(place.live(path)))
    return 1
