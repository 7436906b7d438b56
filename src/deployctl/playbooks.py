"""Where playbooks are found, and a first peek at them for `--help`: no pydantic, and a broken file breaks nothing.

It does not know what a playbook does; `playbook.load` does, and raises what `peek` only notes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import platformdirs

from deployctl import document
from deployctl.errors import WordsError
from deployctl.flags import declared

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Peek:
    """What is seen of a playbook from outside. `flags` is plain data that `flags.declared` takes.

    fault is empty, or says why the file cannot be used; then there are no flags.
    """

    path: Path
    description: str = ""
    flags: Mapping[str, Any] = field(default_factory=dict)
    fault: str = ""


def search_path(environment: Mapping[str, str], cwd: Path) -> tuple[Path, ...]:
    """The directories that may hold playbooks: those of $DEPLOYCTL_PLAYBOOKS alone, else ./playbooks and the user's."""
    named = [part for part in environment.get("DEPLOYCTL_PLAYBOOKS", "").split(":") if part]
    if named:
        return tuple(cwd / Path(part).expanduser() for part in named)
    return cwd / "playbooks", platformdirs.user_config_path("deployctl") / "playbooks"


def find(search: Iterable[Path]) -> dict[str, Path]:
    """The playbooks by name, in order; of two with one name the first wins. What cannot be listed holds none."""
    found: dict[str, Path] = {}
    for directory in search:
        try:
            files = sorted(directory.iterdir())
        except OSError:
            continue
        for path in files:
            if path.suffix in (".yaml", ".yml") and _NAME.fullmatch(path.stem) and path.is_file():
                found.setdefault(path.stem, path)
    return found


def peek(path: Path) -> Peek:
    """Description and flags of a playbook. Raises nothing."""
    description = ""
    try:
        data = document.load(path).data
        if not isinstance(data, dict):
            return Peek(path, fault="wants a map of keys and values")
        description = str(data.get("description") or "")
        raw = data.get("flags")
        flags = raw if isinstance(raw, dict) else {}
        declared(flags)
        return Peek(path, description, flags)
    except WordsError as error:
        return Peek(path, description, fault=str(error))
