"""The private place beside a destination where files wait to go live, and where the old ones are kept: DESTINATION/.deployctl/RUN/.

It is below the destination, so that a rename into it stays in one file system.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import time
from typing import Any, Dict, List, Optional

from .faults import Refused
from .shared import is_shared, make_directory
from .state import Home, read_json

NAME = ".deployctl"
ABOUT = "about.json"
RUN = re.compile(r"[0-9]{8}-[0-9]{6}-[a-z0-9]{4}")
KEPT = 3  # releases of a workload, that of the last run included
KEPT_FOR = 90 * 86400.0  # seconds that an older one is kept


class Place:
    """The directory of one run below one destination."""

    def __init__(self, root: str, run: str) -> None:
        self.root, self.run = os.path.normpath(root), run
        self.home = os.path.join(self.root, NAME)
        self.path = os.path.join(self.home, run)
        self.bundle = os.path.join(self.path, "bundle")
        self.said = os.path.join(self.path, ABOUT)
        self.intent = os.path.join(self.path, "intent.json")
        self.made: List[str] = []  # directories that were made for it, the outermost first

    def new(self, path: str = "") -> str:
        """Where a staged file lies."""
        return os.path.join(self.path, "new", path)

    def old(self, path: str = "") -> str:
        """Where the file that was live before lies."""
        return os.path.join(self.path, "old", path)

    def live(self, path: str) -> str:
        """Where it goes."""
        return os.path.join(self.root, path)

    def remove(self) -> None:
        """Removes the place, and what was made for it as far as it is empty."""
        shutil.rmtree(self.path, ignore_errors=True)
        for directory in [self.home, *reversed(self.made)]:
            try:
                os.rmdir(directory)
            except OSError:
                return

    def sweep(self, home: Home) -> None:
        """Removes what runs of this workload staged that died in prepare: they never began to go live, and no job is left of them."""
        for other in places(self.root):
            ours = os.path.lexists(home.events(other.run)) and not os.path.lexists(home.job(other.run))
            if other.run != self.run and ours and not os.path.lexists(other.intent):
                shutil.rmtree(other.path, ignore_errors=True)

    def about(self) -> Dict[str, Any]:
        """What the place says of itself: {"run", "workload", "who", "at", "files": {path: {"size", "sha256"}}, "gone": [paths]}."""
        return read_json(self.said) or {}

    def prune(self) -> None:
        """Removes the oldest releases of this workload, by count and by age; this run's own one stays."""
        others = [place for place in places(self.root) if place.run != self.run and self._older(place)]
        for index, place in enumerate(others):
            if index < len(others) - (KEPT - 1) or place.age() > KEPT_FOR:
                shutil.rmtree(place.path, ignore_errors=True)

    def age(self) -> float:
        """Seconds since something was written into it; nothing for one that is gone."""
        try:
            return time.time() - os.stat(self.path).st_mtime
        except OSError:
            return 0.0

    def _older(self, other: "Place") -> bool:
        """Whether it is a release of the same workload, and no files that wait for another one's cut-over."""
        waits = not os.path.lexists(other.intent) and (os.path.lexists(other.new()) or os.path.lexists(other.bundle))
        whose = (self.about().get("workload"), other.about().get("workload"))
        return not waits and (None in whose or whose[0] == whose[1])


def places(root: str) -> List[Place]:
    """The places of runs at a destination, the oldest first; what else lies there is none of ours."""
    try:
        names = sorted(os.listdir(os.path.join(root, NAME)))
    except OSError:
        return []
    found = [Place(root, name) for name in names if RUN.fullmatch(name)]
    return [place for place in found if os.path.isdir(place.path) and not os.path.islink(place.path)]


def inside(path: str) -> bool:
    """Whether a path below a destination stays there by its own words, and out of our own place."""
    parts = os.path.normpath(path).split("/")
    return parts[0] not in ("", "..", ".") and NAME not in parts


def whole(root: str, path: str) -> str:
    """The absolute path of a file, without links on the way to it: one text for one file, whichever push names it."""
    directory, name = os.path.split(os.path.join(root, path))
    return os.path.join(os.path.realpath(directory), name)


def room(root: str) -> Dict[str, Optional[int]]:
    """{"free": bytes that a file there may still take, "inodes": how many files, or null where the file system does not count them}."""
    while not os.path.isdir(root):
        root = os.path.dirname(root)
    seen = os.statvfs(root)
    root_may = os.geteuid() == 0
    inodes = (seen.f_ffree if root_may else seen.f_favail) if seen.f_files else None
    return {"free": (seen.f_bfree if root_may else seen.f_bavail) * seen.f_frsize, "inodes": inodes}


def make(root: str, run: str, home: Home) -> Place:
    """Makes the place of a run. Raises Refused where it cannot be made."""
    place = Place(root, run)
    missing = place.root
    while not os.path.lexists(missing):
        place.made.insert(0, missing)
        missing = os.path.dirname(missing)
    try:
        os.makedirs(place.root, exist_ok=True)
        _take(make_directory(place.home))
        place.sweep(home)
        make_directory(place.path)
    except OSError as error:
        place.remove()
        raise Refused("cannot stage there: %s" % error.strerror, where=root, todo="make the directory writable, or correct `to`") from error
    return place


def _take(home: str) -> None:
    """Raises Refused for a directory that somebody else made: whoever owns it could put other files into the places of ours.

    In a destination that a group shares it is the group's, as the destination is.
    """
    seen, above = os.lstat(home), os.stat(os.path.dirname(home))
    ours = stat.S_ISDIR(seen.st_mode) and seen.st_uid == os.geteuid()
    if is_shared(os.path.dirname(home)) and is_shared(home) and stat.S_ISDIR(seen.st_mode) and seen.st_gid == above.st_gid:
        return
    if not ours:
        raise Refused("it is no directory of uid %d" % os.geteuid(), where=home, todo="see what it is, and remove it")
    os.chmod(home, 0o700)
