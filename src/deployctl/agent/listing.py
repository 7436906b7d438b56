"""Which files lie below a destination, for a push that removes what is gone from its source.

It never looks into what is no deployment's: another file system, a virtual environment, a git repository's own directory, a place of
ours; nor through a symbolic link.
"""

from __future__ import annotations

import os
from typing import Callable, Iterable, List

from . import obstacles
from .place import NAME

NEVER = (NAME, ".git")


def below(root: str, keep: Iterable[str], heed: Callable[[], None]) -> List[str]:
    """The paths below root, sorted, without those of `keep` (absolute). What `heed` raises ends it."""
    kept, mounts = set(keep), obstacles.mount_points()
    found: List[str] = []
    waiting = [root]
    while waiting:
        heed()
        directory = waiting.pop()
        try:
            entries = list(os.scandir(directory))
        except OSError:
            continue  # it is not there, or nobody may look: nothing of it is removed
        if directory != root and (any(entry.name == "pyvenv.cfg" for entry in entries) or os.path.realpath(directory) in mounts):
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in NEVER:
                    waiting.append(entry.path)
            elif (entry.is_file(follow_symlinks=False) or entry.is_symlink()) and entry.path not in kept:
                found.append(os.path.relpath(entry.path, root))
    return sorted(found)
