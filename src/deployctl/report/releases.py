"""`deployctl releases` and `forget` for a person."""

from __future__ import annotations

from typing import Any

from deployctl.report.text import clock, count, safe
from deployctl.values import show_size


def lines(target: str, releases: list[dict[str, Any]]) -> list[str]:
    """A line for each release, the newest first, and one for each live file that is not what the run brought."""
    if not releases:
        return [f"{target}: no release is kept here"]
    return [line for release in releases for line in _release(target, release)]


def _release(target: str, release: dict[str, Any]) -> list[str]:
    who = release["who"] or {}
    parts = [safe(release["run"]), f"{target}:{safe(release['workload'])}"]
    parts += [clock(release["at"])] if release["at"] else []
    parts += [f"{safe(who.get('user'))}@{safe(who.get('host'))}"] if who else []
    parts += [f"{count(release['files'], 'old file')}, {show_size(release['size'])}", safe(release["root"])]
    return ["  ".join(parts), *(f"  drift: {safe(found['path'])} {found['what']}" for found in release["drift"])]


def forgotten(target: str, workload: str, gone: dict[str, Any]) -> list[str]:
    """What went."""
    return [f"{target}:{safe(workload)} is forgotten: {count(gone['runs'], 'run')}, {count(gone['releases'], 'release')}"]
