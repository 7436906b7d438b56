"""One plan on one target: prepare, compile, send the job, follow it. Every event goes to whoever listens; it knows no kind of step."""

from __future__ import annotations

import getpass
import os
import platform
import time
from collections.abc import Callable, Generator
from typing import Any

from deployctl.errors import (
    AgentError,
    BusyError,
    DeployError,
    DetachedError,
    DownError,
    Interrupted,
    InterruptedRunError,
    RefusedError,
    TransportError,
    UnfinishedError,
)
from deployctl.events import Event, Sink, event
from deployctl.inventory import TargetSpec
from deployctl.plan import Plan, compile_job
from deployctl.steps.base import Opened
from deployctl.target import Session
from deployctl.transports.connect import Connections
from deployctl.transports.container import Container
from deployctl.transports.proxmox import Facts

BUSY_LOOK = 1.0  # seconds between two tries to get a lock that another run holds
OUTCOMES: tuple[tuple[type[DeployError], str], ...] = (
    (BusyError, "busy"),
    (TransportError, "unreachable"),
    (InterruptedRunError, "interrupted"),
    (DetachedError, "detached"),
    (UnfinishedError, "unfinished"),
    (DownError, "down"),
)


class Recorder:
    """Makes the controller's events of a run, tells them, and keeps those that the target has not got yet.

    It knows how far the run has come: `sent` (its job is the target's business now), `begun` (the job has said a word), `op` (the
    operation that began last), `ended` (the status of its end).
    """

    def __init__(self, run: str, target: str, emit: Sink) -> None:
        self.run, self.target = run, target
        self.unsent: list[Event] = []
        self.phase = "prepare"
        self.sent, self.begun, self.op = False, False, ""
        self.ended: int | None = None
        self._emit = emit

    def __call__(self, what: str, **fields: Any) -> None:
        """One event of now."""
        told = event(self.run, self.target, self.phase, what, **fields)
        self.unsent.append(told)
        self.tell(told)

    def tell(self, told: Event) -> None:
        """An event of whomever."""
        if told["run"] == self.run:
            self.begun = self.begun or told["what"] == "cutover"
            self.op = told["op"] if told["what"] == "op" else self.op
            self.ended = told["status"] if told["what"] == "end" else self.ended
        self._emit(told)

    def take(self) -> list[Event]:
        """What the target has not got yet; it is got with the message that carries it."""
        taken, self.unsent = self.unsent, []
        return taken


def who() -> dict[str, Any]:
    """Who runs this from where: {"user", "host", "pid"}."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return {"user": user, "host": platform.node(), "pid": os.getpid()}


def run(plan: Plan, connections: Connections, emit: Sink, patience: float | None = None) -> int:
    """Runs the plan to its end and returns its exit status; the last event is always `end`, on the screen as in the target.

    patience: seconds to wait for another run's lock or a container's; None: not for the one, a little for the other.
    """
    record = Recorder(plan.run, plan.target.name, emit)
    record("begin", playbook=plan.playbook, workload=plan.workload.name, flags=dict(plan.flags), who=who(), target_kind=plan.target.kind)
    try:
        return _lead(plan, connections, record, patience)
    except (DeployError, Interrupted) as error:
        return _say_no(record, error)


def _lead(plan: Plan, connections: Connections, record: Recorder, patience: float | None) -> int:
    """The exit status. Raises DeployError or Interrupted where the target cannot be told of it."""
    with open_session(plan.target, connections, lambda container: container.ready(patience, record)) as session:
        try:
            plan, pieces = _prepare(plan, session, record, patience or 0.0)
            return _cut_over(plan, session, record, pieces, patience) if pieces is not None else _leave_alone(session, record)
        except (DeployError, Interrupted) as error:
            if record.sent and not record.begun:
                error = _unsent(plan, connections, record, error)
            status = _say_no(record, error)
            if not record.sent:
                session.bid_farewell(record.take())
            return status


def _unsent(plan: Plan, connections: Connections, record: Recorder, error: DeployError | Interrupted) -> DeployError | Interrupted:
    """The error of a job that was sent and said no word; it counts as not sent where the target has refused it, or knows of none."""
    if isinstance(error, (RefusedError, AgentError)):
        record.sent = False
    if not isinstance(error, DetachedError):
        return error
    try:
        with open_session(plan.target, connections) as session:
            known = next((run for run in session.ask("history")["runs"] if run["run"] == plan.run), None)
    except (DeployError, Interrupted):
        return error
    if known and (known["alive"] or known["op"] != "prepare"):
        return error
    record.sent = False
    return TransportError("the session broke off before the job began; nothing was changed", where=plan.target.name, todo="run again")


def open_session(target: TargetSpec, connections: Connections, look: Callable[[Container], Facts] = Container.admit) -> Session:
    """The talk with a target's agent; `look` decides whether a container may be entered. Raises DeployError where there can be none."""
    transport = connections.transport(target)
    seen = look(transport.container) if transport.container else None
    return Session(target.name, transport, target.python, target.state, seen)


def _prepare(plan: Plan, session: Session, record: Recorder, patience: float) -> tuple[Plan, list[Any] | None]:
    """Locks, looks, and lets each step prepare; returns the plan, which knows the last launch now, and their pieces of Facts.

    No pieces: the workload is to be left alone.
    """
    began = time.monotonic()
    hello = session.hello
    record("connected", python=hello["python"], executable=hello["executable"], container=plan.target.ct, node=hello["node"])
    answer = _open(plan, session, record, patience)
    record("locked", workload=plan.workload.name, seconds=round(time.monotonic() - began, 3))
    if answer.get("unfinished"):
        answer = _finish(session, record, answer["unfinished"])
    found = opened(answer, session)
    if "process" not in found.faults:
        record("found", process=answer["process"], how=answer["how"], run_of=answer["run"])
    if plan.unless_running and answer["process"] is not None:
        return plan, None
    plan = plan.knowing(answer["flags"], answer["inherited"])
    if plan.settled.kept or plan.settled.dropped or (plan.asked.keep and not plan.unless_running):
        record("flags", kept=plan.settled.kept, dropped=plan.settled.dropped, command=plan.workload.command)
    for step in plan.steps:
        step.admit(plan.setting, found, record)
    pieces = zip(plan.steps, plan.gathered, strict=True)
    return plan, [step.prepare(gathered, session, plan.setting, found, record) for step, gathered in pieces]


def _open(plan: Plan, session: Session, record: Recorder, patience: float) -> dict[str, Any]:
    """The agent's answer to `open`; waits up to `patience` seconds for another run's lock. Raises BusyError."""
    until, told = time.monotonic() + patience, False
    while True:
        try:
            answer = session.ask("open", run=plan.run, who=who(), workload=plan.workload.as_data(), events=record.unsent)
            record.take()
            return answer
        except BusyError as error:
            if time.monotonic() >= until:
                raise
            if not told:
                record("busy", why=error.what, patience=patience)
                told = True
            time.sleep(min(BUSY_LOOK, max(0.0, until - time.monotonic())))


def _finish(session: Session, record: Recorder, left: dict[str, Any]) -> dict[str, Any]:
    """Leads the run that was left without an end to it, then looks anew."""
    record("unfinished", left=left["run"], op=left["op"], list=left["list"])
    return tell(session.follow("finish", run=left["run"]), record.tell)[1]


def tell(events: Generator[Event, None, dict[str, Any]], emit: Sink, to_the_end: bool = False) -> tuple[int, dict[str, Any]]:
    """Passes events on. (the status of the last `end`, or 7 without one; the answer).

    At a job that lingers it ends with 4 and no answer, unless a person wants to follow it `to_the_end`.
    """
    status = 7
    while True:
        try:
            told = next(events)
        except StopIteration as over:
            return status, over.value
        emit(told)
        if told["what"] == "end":
            status = told["status"]
        elif told["what"] == "lingering" and told["detail"] != "cancelled" and not to_the_end:
            return 4, {}


def _cut_over(plan: Plan, session: Session, record: Recorder, pieces: list[Any], patience: float | None) -> int:
    job = compile_job(plan, pieces, who())
    if job["do"] and session.container and session.seen:
        session.container.still(session.seen, patience, record)
        for step in plan.steps:
            step.seal(session.container, plan.setting, record)
    record.phase = "report"
    if not job["do"]:
        record("end", status=0, outcome="unchanged", process=None, down=None, reason=None)
        session.bid_farewell(record.take())
        return 0
    record.sent = True
    status, answer = tell(session.follow("job", job=job, events=record.take()), _settled(plan, session, record))
    if not answer:  # the job lingers; its own end comes later, in the target
        record("end", status=status, outcome="lingering", process=None, down=None, reason=None)
    elif answer["status"] is None:
        raise died(plan.target.name, plan.run, answer)
    return status


def _leave_alone(session: Session, record: Recorder) -> int:
    record.phase = "report"
    record("end", status=0, outcome="runs-already", process=None, down=None, reason=None)
    session.bid_farewell(record.take())
    return 0


def _settled(plan: Plan, session: Session, record: Recorder) -> Sink:
    """Passes events on; before the end of a run that succeeded each step has its last word."""

    def emit(told: Event) -> None:
        if told["what"] == "end" and told["status"] == 0 and session.container:
            for step in plan.steps:
                step.after(session.container, plan.setting, record)
        record.tell(told)

    return emit


def opened(answer: dict[str, Any], session: Session) -> Opened:
    """What the agent found, for the steps."""
    facts = {name: answer[name] for name in ("process", "program", "old_program", "faults", "tree", "respawn", "environment")}
    return Opened(**facts, container=session.seen)


def died(target: str, run: str, answer: dict[str, Any]) -> DeployError:
    """The error that the answer of a job without an end is: {"unfinished", "running"}, as `attach` has it too."""
    left = answer["unfinished"]
    if not left:
        return InterruptedRunError(f"run {run} was killed in prepare; nothing was changed", where=target, todo="run again")
    at = f" in {left['op']}" if left.get("op") else ""
    todo = f"`deployctl resume {run} --on {target}` brings it to its end"
    if answer["running"]:
        return UnfinishedError(f"the job of run {run} died{at}; something of the workload runs", where=target, todo=todo)
    return DownError(f"the job of run {run} died{at}; nothing of the workload runs", where=target, todo=todo)


def _say_no(record: Recorder, error: DeployError | Interrupted) -> int:
    """Tells why the run ends here, and that it does; the exit status. A run that has ended stays as it ended."""
    if record.ended is not None:
        return record.ended
    if isinstance(error, Interrupted):
        error = interrupted(record.target, record.run, record.op) if record.sent else _IN_PREPARE
    outcome = next((word for kind, word in OUTCOMES if isinstance(error, kind)), "refused")
    record("failed", op=None, why=error.what, where=error.where, todo=error.todo)
    record("end", status=error.exit_status, outcome=outcome, process=None, down=None, reason=error.what)
    return error.exit_status


_IN_PREPARE = InterruptedRunError("interrupted before anything was stopped; nothing was changed")


def interrupted(target: str, run: str, op: str) -> DetachedError:
    """What is said to a person who leaves a job that is at work."""
    doing, todo = f", in {op}" if op else "", f"`deployctl attach {run} --on {target}` follows it again"
    return DetachedError(f"interrupted; the job goes on in the target{doing}", where=target, todo=todo)
