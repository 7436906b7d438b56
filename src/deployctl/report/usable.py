"""`deployctl hosts check` for a person: what can be used, and whose its records are."""

from __future__ import annotations

from typing import Any

from deployctl.report.text import safe


def lines(found: dict[str, Any]) -> list[str]:
    """One line for a target that can be used, and what to know where several operators share it."""
    target, directory = found["target"], safe(found["directory"])
    where = f"container {found['container']}, " if found["container"] else ""
    can = f"{target}: can be used: {where}python {safe(found['python'])} ({safe(found['executable'])}); records in {directory}"
    if found["shared"]:
        return [f"{can}, shared by the group {safe(found['group'])}"]
    if found["uid"] == 0:
        return [f"{can}, of root"]
    return [
        f"{can}, of {safe(found['user'])} alone",
        "  not shared: another operator without root sees neither these runs nor their lock",
        "  do: where several work there, name a directory that a group shares: `state:` of the target (docs/runs.md)",
    ]
