"""The tree as it will be: real directories where something changes, links to what stays, the staged files in their places.

Checks run in it. It lies in the place of the run and is taken away right after them. What a check would write into it, into a directory
in which nothing changes, is written for real: those are links.
"""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Set

from .intent import CACHE
from .place import NAME, whole


@contextmanager
def trees(session: Any) -> Iterator[List[str]]:
    """Directories: that of the workload first, then those of pushes that go elsewhere. Without anything staged they are the live ones."""
    directory = os.path.realpath(session.workload["directory"])
    staged = {whole(place.root, path): place.new(path) for place, path in session.staged}
    if not staged and not session.leaving:
        yield [directory]
        return
    tops = _tops([directory, *(os.path.realpath(root) for root in session.places)])
    place = next(iter(session.places.values()))
    base = os.path.join(place.path, "tree")
    opened = {path: os.stat(path).st_mode for path in (place.home, place.path)} if session.workload["user"] else {}
    try:
        os.mkdir(base, 0o755)
        for path, mode in opened.items():
            os.chmod(path, mode & 0o7777 | 0o011)  # the workload's user must get through, and sees nothing of it
        made = {top: os.path.join(base, str(number)) for number, top in enumerate(tops)}
        for top, tree in made.items():
            inside = {path for path in (*staged, *session.leaving) if path.startswith(top.rstrip("/") + "/")}
            _mirror(top, tree, inside, staged)
        first = next(top for top in tops if directory == top or directory.startswith(top.rstrip("/") + "/"))
        own = os.path.normpath(os.path.join(made[first], os.path.relpath(directory, first)))
        os.makedirs(own, exist_ok=True)
        yield [own, *(tree for top, tree in made.items() if top != first)]
    finally:
        for path, mode in opened.items():
            os.chmod(path, mode & 0o7777)
        shutil.rmtree(base, ignore_errors=True)


def _tops(directories: List[str]) -> List[str]:
    """Those that lie in no other one."""
    alone = list(dict.fromkeys(directories))
    return [path for path in alone if not any(path != other and path.startswith(other.rstrip("/") + "/") for other in alone)]


def _mirror(live: str, tree: str, changing: Set[str], staged: Dict[str, str]) -> None:
    os.mkdir(tree, 0o755)
    os.chmod(tree, 0o755)
    here = [path for path in changing if os.path.dirname(path) == live]
    deeper: Dict[str, Set[str]] = {}
    for path in changing.difference(here):
        deeper.setdefault(path[len(live.rstrip("/")) + 1 :].split("/", 1)[0], set()).add(path)
    for name in os.listdir(live) if os.path.isdir(live) else []:
        if name not in (NAME, CACHE) and name not in deeper and os.path.join(live, name) not in changing:
            os.symlink(os.path.join(live, name), os.path.join(tree, name))
    for name, below in deeper.items():
        _mirror(os.path.join(live, name), os.path.join(tree, name), below, staged)
    for path in here:
        if path in staged:
            _link(staged[path], os.path.join(tree, os.path.basename(path)))


def _link(staged: str, path: str) -> None:
    try:
        os.link(staged, path)
    except OSError:  # a push to another file system
        shutil.copy2(staged, path)
