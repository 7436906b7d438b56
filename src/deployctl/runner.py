"""One plan on one target: prepare, compile, send the job, follow it. Every event goes to whoever listens; it knows no kind of step."""

from __future__ import annotations

import getpass
import os
import platform
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from deployctl.errors import BusyError, DeployError, DetachedError, DownError, InterruptedRunError, TransportError
from deployctl.events import Event, Sink, event
from deployctl.flags.changes import Change, compare
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
    (DownError, "down"),
)


class Recorder:
    """Makes the controller's events of a run, tells them, and keeps those that the target has not got yet."""

    def __init__(self, run: str, target: str, emit: Sink) -> None:
        self.run, self.target, self.emit = run, target, emit
        self.unsent: list[Event] = []
        self.phase = "prepare"

    def __call__(self, what: str, **fields: Any) -> None:
        """One event of now."""
        told = event(self.run, self.target, self.phase, what, **fields)
        self.unsent.append(told)
        self.emit(told)

    def take(self) -> list[Event]:
        """What the target has not got yet; it is got with the message that carries it."""
        taken, self.unsent = self.unsent, []
        return taken


@dataclass(frozen=True)
class Preview:
    """What `--plan` shows: the plan, what the agent found, what each step would do, and the status that the run would have ended with."""

    plan: dict[str, Any]
    found: dict[str, Any]
    steps: tuple[dict[str, Any], ...]
    holder: dict[str, Any] | None
    problems: tuple[DeployError, ...]
    changes: tuple[Change, ...] = ()  # of the command line, against the running one

    @property
    def status(self) -> int:
        """0, else that of the first problem."""
        return self.problems[0].exit_status if self.problems else 0


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
        with _session(plan, connections, lambda container: container.ready(patience, record)) as session:
            try:
                plan, pieces = _prepare(plan, session, record, patience or 0.0)
                return _cut_over(plan, session, record, pieces, patience) if pieces is not None else _leave_alone(session, record)
            except DeployError as error:
                status = _say_no(record, error)
                session.bid_farewell(record.take())
                return status
    except DeployError as error:
        return _say_no(record, error)


def preview(plan: Plan, connections: Connections) -> Preview:
    """Looks at the target without lock or staging. Raises DeployError where it cannot be looked at."""
    with _session(plan, connections) as session:
        answer = session.ask("look", workload=plan.workload.as_data())
        opened = _opened(answer, session)
        plan = plan.knowing(answer["flags"], answer["inherited"])
        steps: list[dict[str, Any]] = []
        problems: list[DeployError] = []
        for step, gathered in zip(plan.steps, plan.gathered, strict=True):
            try:
                step.admit(plan.setting, opened, lambda *_, **__: None)
                steps.append(step.describe() | (step.preview(gathered, session, plan.setting, opened) or {}))
            except DeployError as error:
                steps.append(step.describe())
                if str(error) not in map(str, problems):  # two steps may miss the same thing
                    problems.append(error)
        if session.container and session.seen and session.seen.lock:
            problems.append(session.container.busy(session.seen))
        holder = answer["holder"]
        if holder:
            problems.append(BusyError("another run holds the workload", where=plan.target.name, todo="wait for it"))
        return Preview(plan.describe(), answer, tuple(steps), holder, tuple(problems), _changes(plan, answer["process"]))


def _changes(plan: Plan, process: dict[str, Any] | None) -> tuple[Change, ...]:
    """What becomes of the running command line."""
    return tuple(compare(process["argv"], plan.workload.command, plan.asked.shape)) if process and plan.launches else ()


def open_session(target: TargetSpec, connections: Connections, look: Callable[[Container], Facts] = Container.admit) -> Session:
    """The talk with a target's agent; `look` decides whether a container may be entered. Raises DeployError where there can be none."""
    transport = connections.transport(target)
    seen = look(transport.container) if transport.container else None
    return Session(target.name, transport, target.python, target.state, seen)


@contextmanager
def _session(plan: Plan, connections: Connections, look: Callable[[Container], Facts] = Container.admit) -> Iterator[Session]:
    with _interruptible("prepare"), open_session(plan.target, connections, look) as session:
        yield session


@contextmanager
def _interruptible(phase: str) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as error:
        if phase == "prepare":
            raise InterruptedRunError("interrupted before anything was stopped; nothing was changed") from error
        raise DetachedError("interrupted; the job goes on in the target", todo="`deployctl attach` follows it again") from error


def _prepare(plan: Plan, session: Session, record: Recorder, patience: float) -> tuple[Plan, list[Any] | None]:
    """Locks, looks, and lets each step prepare; returns the plan, which knows the last launch now, and their pieces of Facts.

    No pieces: the workload is to be left alone.
    """
    with _interruptible("prepare"):
        began = time.monotonic()
        hello = session.hello
        record("connected", python=hello["python"], executable=hello["executable"], container=plan.target.ct, node=hello["node"])
        answer = _open(plan, session, record, patience)
        record("locked", workload=plan.workload.name, seconds=round(time.monotonic() - began, 3))
        if answer.get("unfinished"):
            answer = _finish(session, record, answer["unfinished"])
        opened = _opened(answer, session)
        if "process" not in opened.faults:
            record("found", process=answer["process"], how=answer["how"], run_of=answer["run"])
        if plan.unless_running and answer["process"] is not None:
            return plan, None
        plan = plan.knowing(answer["flags"], answer["inherited"])
        if plan.settled.kept or plan.settled.dropped or (plan.asked.keep and not plan.unless_running):
            record("flags", kept=plan.settled.kept, dropped=plan.settled.dropped, command=plan.workload.command)
        for step in plan.steps:
            step.admit(plan.setting, opened, record)
        pieces = zip(plan.steps, plan.gathered, strict=True)
        return plan, [step.prepare(gathered, session, plan.setting, opened, record) for step, gathered in pieces]


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
    return tell(session.follow("finish", run=left["run"]), record.emit)[1]


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
        with _interruptible("prepare"):
            session.container.still(session.seen, patience, record)
            for step in plan.steps:
                step.seal(session.container, plan.setting, record)
    record.phase = "report"
    if not job["do"]:
        record("end", status=0, outcome="unchanged", process=None, down=None, reason=None)
        session.bid_farewell(record.take())
        return 0
    with _interruptible("cutover"):
        status, answer = tell(session.follow("job", job=job, events=record.take()), _settled(plan, session, record))
        if not answer:  # the job lingers; its own end comes later, in the target
            record("end", status=status, outcome="lingering", process=None, down=None, reason=None)
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
        record.emit(told)

    return emit


def _opened(answer: dict[str, Any], session: Session) -> Opened:
    facts = {name: answer[name] for name in ("process", "program", "old_program", "faults", "tree", "respawn", "environment")}
    return Opened(**facts, container=session.seen)


def _say_no(record: Recorder, error: DeployError) -> int:
    """Tells why the run ends here, and that it does."""
    outcome = next((word for kind, word in OUTCOMES if isinstance(error, kind)), "refused")
    record("failed", op=None, why=error.what, where=error.where, todo=error.todo)
    record("end", status=error.exit_status, outcome=outcome, process=None, down=None, reason=error.what)
    return error.exit_status
