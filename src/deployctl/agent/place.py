"""The private place beside a destination where files wait to go live, and where the old ones are kept: DESTINATION/.deployctl/RUN/.

It is below the destination, so that a rename into it stays in one file system.
"""

from __future__ import annotations

import os
import shutil
from typing import Dict, List, Optional

from .faults import Refused
from .state import Home, private_directory

NAME = ".deployctl"
KEPT = 3  # releases


class Place:
    """The directory of one run below one destination."""

    def __init__(self, root: str, run: str) -> None:
        self.root, self.run = os.path.normpath(root), run
        self.home = os.path.join(self.root, NAME)
        self.path = os.path.join(self.home, run)
        self.bundle = os.path.join(self.path, "bundle")
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
        for run in os.listdir(self.home):
            begun = os.path.lexists(os.path.join(self.home, run, "intent.json"))
            ours = os.path.lexists(home.events(run)) and not os.path.lexists(home.job(run))
            if run != self.run and ours and not begun:
                shutil.rmtree(os.path.join(self.home, run), ignore_errors=True)

    def prune(self) -> None:
        """Removes the oldest releases; this run's own one and the two before stay."""
        others = sorted(run for run in os.listdir(self.home) if run != self.run)
        for run in others[: -(KEPT - 1)]:
            shutil.rmtree(os.path.join(self.home, run), ignore_errors=True)


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
        private_directory(place.home)
        place.sweep(home)
        private_directory(place.path)
    except OSError as error:
        place.remove()
        raise Refused("cannot stage there: %s" % error.strerror, where=root, todo="make the directory writable, or correct `to`") from error
    return place
