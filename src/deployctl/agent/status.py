"""status: what the target knows of its workloads, and what the kernel says of their processes. No lock, nothing is written."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional

from . import match, procfs, runs, state, tree
from .faults import Fault


def status(session: Any, request: Dict[str, Any]) -> Dict[str, Any]:
    """{"workloads": [{"name", "process", "how", "record", "exit", "last", "unfinished", "holder", "fault"}]}, of those known or asked for.

    request: workloads, as the playbooks name them, for those that have no record here; state.
    """
    base = state.directory(request.get("state"))
    asked: Dict[str, Optional[Dict[str, Any]]] = {item["name"]: match.known_by(item) for item in request.get("workloads", [])}
    return {"workloads": [_one(base, name, asked.get(name)) for name in sorted({*state.names(base), *asked})], "state": base}


def _one(base: str, name: str, asked: Optional[Dict[str, Any]]) -> Dict[str, Any]:
    home = state.Home(base, name)
    record = state.read_json(home.record)
    answer: Dict[str, Any] = {"name": name, "record": record, "process": None, "how": None, "fault": None}
    try:
        if asked is not None:
            found = tree.find(asked, record, os.fsencode(home.mark))
            answer.update(process=found.top, how=found.how)
        elif record is not None and procfs.same(record):
            answer.update(process=procfs.look(record["pid"]), how="record")
    except Fault as fault:
        answer["fault"] = fault.as_dict()
    exit_ = state.read_json(home.exit)
    matches = record and exit_ and exit_.get("pid") == record["pid"] and exit_.get("started") == record["started"]
    answer["exit"] = exit_ if matches else None
    answer["holder"] = runs.holder(home)
    answer["last"], answer["unfinished"] = _last(home), runs.left(home)
    return answer


def _last(home: state.Home) -> Optional[Dict[str, Any]]:
    """The last event of the newest run."""
    known: List[str] = state.runs(home)
    return state.last_event(home.events(known[-1])) if known else None
