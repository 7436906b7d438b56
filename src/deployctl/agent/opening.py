"""open: locks the workload and looks at it; look: the same look without a lock. Nothing live is touched."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Optional

from . import adopt, become, capture, environment, evidence, launchers, lock, program, respawn, runs, scope, starts, state, tree, unit
from .faults import Busy, Fault, Refused

Facts = Dict[str, Any]


def open_run(session: Any, request: Dict[str, Any]) -> Facts:
    """Takes the lock before anything else, begins the run's event file, then looks.

    request: run, target, who, workload, state. Raises Busy; the facts are those of `look`. When an earlier run has no end, the answer
    is {"unfinished": …} alone: it must be finished (`finish`) before anything else is allowed.
    """
    home = session.settle(request)
    home.make()
    try:
        session.lock = lock.take(home.lock, dict(request["who"], run=request["run"]))
    except Busy as busy:
        raise Busy(busy.what, busy.where, busy.todo, holder=runs.doing(home, busy.facts["holder"])) from busy
    home.sweep()
    home.prune()
    session.events = state.EventFile(home.events(request["run"]), request["run"], request["target"])
    session.append(request.get("events", []))
    earlier = runs.unfinished(home)
    return {"unfinished": earlier} if earlier else facts(session)


def look(session: Any, request: Dict[str, Any]) -> Facts:
    """The facts, who holds the lock now (`holder`, or null), and the run that has no end (`unfinished`, or null)."""
    home = session.settle(request)
    held = runs.holder(home)
    return dict(facts(session), holder=held, unfinished=runs.left(home))


def facts(session: Any) -> Facts:
    """What the agent knows of the workload: the keys below; what could not be found out stands in faults, by its name.

    process is a Seen or null; run is the run that launched it, when deployctl did; tree is what launchers.as_dict says, respawn who would
    start it again (respawn.supervisor); both null when it does not run; old_program is what the running process uses, `other` in it says
    that the new one is another; environment is {"lost", "changed"}, names that a program hears of; inherited is what adopt.of says where
    the workload takes it; flags are what the last launch remembered of them.
    """
    faults: Dict[str, Any] = {}
    session.record = state.read_json(session.home.record)
    found = _noting(faults, "process", lambda: _process(session))
    session.before = found.top if found else None
    session.capture = None
    if session.before:
        session.capture = _noting(faults, "capture", lambda: capture.capture(session.before["pid"]))
    top = session.before
    members = tree.tree([top["pid"]], os.fsencode(session.home.mark)) if top else []
    session.samples = evidence.samples(members)
    inherited = _noting(faults, "program", lambda: adopt.inherit(session))
    surroundings = _noting(faults, "environment", lambda: _surroundings(session)) if "program" not in faults else None
    session.program = _noting(faults, "program", lambda: _program(session, surroundings)) if surroundings is not None else None
    if session.program is not None:
        _noting(faults, "start", lambda: _rehearse(session))
    _noting(faults, "scope", scope.look)
    _noting(faults, "systemd", unit.look)
    old = _noting(faults, "interpreter", lambda: _same_program(session))
    recorded = found is not None and found.how == "record"
    return {
        "process": session.before,
        "how": found.how if found else None,
        "run": session.record["run"] if recorded and session.record else None,
        "tree": launchers.as_dict(launchers.line(top, members)) if top else None,
        "respawn": respawn.supervisor(top) if top and not recorded else None,
        "program": session.program.as_dict() if session.program else None,
        "old_program": dict(old.as_dict(), other=_other(session, old)) if old else None,
        "environment": environment.compared(session.capture and session.capture["environment"], surroundings or {}),
        "inherited": inherited,
        "flags": (session.record or {}).get("flags") or {},
        "faults": faults,
    }


def _noting(faults: Dict[str, Any], name: str, act: Callable[[], Any]) -> Any:
    try:
        return act()
    except Fault as fault:
        faults[name] = fault.as_dict()
        return None


def _process(session: Any) -> tree.Found:
    found = tree.find(session.workload, session.record, os.fsencode(session.home.mark))
    top, workload, record = found.top, session.workload, session.record
    if top is None:
        tree.no_twin(workload)
        return found
    if found.how == "record" and record and workload["directory"] not in ("", record["directory"]):
        raise Refused(
            "'%s' runs in %s; this playbook says %s" % (workload["name"], record["directory"], workload["directory"]),
            where=workload["name"], todo="give the other workload a name of its own",
        )  # fmt: skip
    for name in state.names(session.home.base):
        other = state.read_json(state.Home(session.home.base, name).record) if name != workload["name"] else None
        if other and (other["pid"], other["started"], other["boot"]) == (top["pid"], top["started"], top["boot"]):
            raise Refused(
                "pid %d is the workload '%s' of run %s" % (top["pid"], name, other["run"]),
                where=workload["name"], todo="use that name, or a `match` that does not fit it",
            )  # fmt: skip
    return found


def _surroundings(session: Any) -> Dict[str, str]:
    if session.workload.get("inherit") and session.capture is not None:
        return environment.without_session(session.capture["environment"])
    return environment.of(session.workload, session.capture)


def _program(session: Any, surroundings: Dict[str, str]) -> program.Program:
    workload, was = session.workload, session.capture
    if workload.get("inherit") and was is not None:
        return program.running(was["argv"], was["environment"], was["directory"], was["exe"])
    return program.find(workload["command"], surroundings, workload["directory"])


def _rehearse(session: Any) -> None:
    """Whether the program could be started at all by whom and as what it shall be; the directory may yet be pushed."""
    workload = session.workload
    if os.path.isdir(workload["directory"]) and not workload.get("inherit"):
        become.rehearse(starts.new(dict(workload, log=workload["log"] or os.devnull), session.capture))


def _same_program(session: Any) -> Optional[program.Program]:
    if session.capture is None:
        return None
    was = session.capture
    old = program.running(was["argv"], was["environment"], was["directory"], was["exe"])
    if _other(session, old) and not session.workload["command"][0].startswith("/"):
        raise Refused(
            "the running process uses %s, this command would start %s" % (old.path, session.program.interpreter),
            where="workload: command", todo="name the one that you mean by its absolute path; the running one is %s" % old.path,
        )  # fmt: skip
    return old


def _other(session: Any, old: program.Program) -> bool:
    """Whether the command would start another program than the one that runs."""
    return session.program is not None and bool(old.identity != session.program.identity)
