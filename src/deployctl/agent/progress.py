"""Rules about visible work: what a tree writes, which file grows, whether it computes as it did before. It knows no signal."""

from __future__ import annotations

from typing import List, Optional

from . import calls, files
from .case import Case, Finding, finding

WRITES = 1000.0  # bytes a second that are more than a log
BUSY, QUIET = 0.5, 0.2  # shares of a core: works, rests
ALIKE = 2.5  # two rates within this factor are one


def progressing(case: Case) -> Optional[Finding]:
    """Bytes of the tree grow as they did not before, a file is being written that was not, or the work is of another kind."""
    growing = _growing(case)
    if growing or _more(case, "written_bytes") or _more(case, "dirtied_bytes"):
        facts = ["grows: %s" % path for path in growing[:4]]
        return finding(("shutdown-progressing", "writing"), "strong" if case.before else "hint", "wait", False, facts)
    if case.before and case.thread and calls.family(case.thread) in calls.SYNC and case.moved():
        return finding(("shutdown-progressing", "syncing"), "strong", "wait", False)
    wants, before = case.demand(whole=True), case.demand(whole=True, baseline=True)
    if wants is not None and before is not None and wants >= BUSY and before < QUIET:
        return finding(("shutdown-progressing", "computing"), "hint", "wait", False)
    return None


def _more(case: Case, name: str) -> bool:
    """Whether the tree writes much more than it did, or much where that is not known."""
    now, was = case.rate(name, whole=True), case.rate(name, whole=True, baseline=True)
    if now is None or now < WRITES or (was is None and case.before):
        return False
    return was is None or now > ALIKE * max(was, WRITES / ALIKE)


def _growing(case: Case) -> List[str]:
    """Files, beside stdout and stderr, that grow now and did not before the signal; all that grow where that is not known."""
    grown = []
    for one in (case.main, *case.kin):
        old, new = (one.lately or {}).get("files", []), one.now["files"]
        was = {_key(file) for file in (one.before or {}).get("files", [])} if case.before else set()
        sizes = {_key(file): max(file["size"], file["position"]) for file in old}
        outputs = {_key(file) for file in new if file["fd"] in (1, 2)}
        for file in new:
            key, size = _key(file), max(file["size"], file["position"])
            fresh = key not in was if case.before else bool(files.HALF.search(file["path"]))
            if key not in outputs and fresh and size > sizes.get(key, 0):
                grown.append(file["path"])
    return grown


def _key(file: files.File) -> "tuple[int, int]":
    return file["dev"], file["ino"]


def as_before(case: Case) -> bool:
    """Whether CPU and bytes flow as in the earlier look; true where that is not known."""
    for name, least in (("demand", QUIET * 1e9), ("written_bytes", WRITES)):
        now, was = case.rate(name), case.rate(name, baseline=True)
        if now is not None and was is not None and not (max(now, was) < least or max(now, was) <= ALIKE * min(now, was)):
            return False
    return True
