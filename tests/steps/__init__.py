"""What the tests of steps share: a step written in a playbook, a setting, and a talk with a real agent on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from deployctl.agent import golive
from deployctl.errors import DeployError, WordsError
from deployctl.playbook import load
from deployctl.steps.base import Opened, Setting, Step
from deployctl.steps.push import Push
from deployctl.target import Session
from deployctl.transports.local import Local
from deployctl.workload import DEFAULT_LADDER, Workload

T = TypeVar("T")
RUN = "20260101-000000-aaaa"
WHO = {"user": "anna", "host": "lab", "pid": 1}
NO_MATCH = "no-such-script-of-the-step-tests.py"  # what no process on this machine is called
HEAD = "workload:\n  name: train\n  directory: /srv/a\n  command: [python3, train.py]\n  log: train.log\nsteps:\n"  # 6 lines


def until(what: str, look: Callable[[], T], seconds: float = 20) -> T:
    """The first true value of `look`; fails after the deadline."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := look():
            return found
        time.sleep(0.02)
    raise AssertionError(f"not within {seconds} s: {what}")


def steps_of(home: Path, steps: str) -> tuple[Step, ...]:
    """The steps that a playbook of these lines holds; the first line is line 7."""
    (home / "restart.yaml").write_text(HEAD + steps)
    return load(home / "restart.yaml").model.steps


def refusal(home: Path, steps: str) -> tuple[int, str, str]:
    """(line, what, what to do) of the error that a playbook of these lines is."""
    with pytest.raises(WordsError) as caught:
        steps_of(home, steps)
    file, _, line = caught.value.where.rpartition(":")
    assert Path(file).name == "restart.yaml"
    return int(line), caught.value.what, caught.value.todo


def workload(**changes: Any) -> Workload:
    """A workload that does not run on this machine."""
    return Workload(**{"name": "train", "directory": "/", "command": ("python3", NO_MATCH), "log": "train.log", **changes})


def setting(sources: Path = Path("/"), rollback: bool = True, **changes: Any) -> Setting:
    """What a plan would say to its steps."""
    return Setting(RUN, workload(**changes), sources, DEFAULT_LADDER, rollback)


def opened(process: Any = None, program: Any = None, faults: tuple[str, ...] = ()) -> Opened:
    """What the agent would have found; each fault says that it is one."""
    found = {fact: {"what": f"a fault of {fact}", "where": "there", "todo": "look"} for fact in faults}
    return Opened(process, program, None, found)


class Talk:
    """An opened session with an agent on this machine, its destination `live`, sources `train`, and what was recorded."""

    def __init__(self, home: Path, run: str = RUN, **changes: Any) -> None:
        self.home, self.state, self.live, self.train = home, home / "state", home / "live", home / "train"
        self.live.mkdir(exist_ok=True)
        self.train.mkdir(exist_ok=True)
        self.run, self.changes = run, changes
        self.events: list[dict[str, Any]] = []
        self.session = Session("here", Local("here"), state=str(self.state))
        self.facts = self.ask("open", run=run, who=WHO, workload=workload(**changes).as_data())

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        """The agent's answer."""
        return self.session.ask(op, **fields)

    def record(self, what: str, **fields: Any) -> None:
        """An event, kept here."""
        self.events.append({"what": what, **fields})

    def write(self, path: str, content: bytes = b"new\n", mode: int = 0o644) -> Path:
        """A file of the sources."""
        return _write(self.train / path, content, mode)

    def write_live(self, path: str, content: bytes = b"old\n", mode: int = 0o644) -> Path:
        """A file of the destination."""
        return _write(self.live / path, content, mode)

    def push(self, **fields: Any) -> Any:
        """What a push of the sources to the destination prepares."""
        step = Push.model_validate({"from": str(self.train), "to": str(self.live), **fields})
        plan = setting(self.home, **self.changes)
        return step.prepare(step.gather(plan), self.session, plan, opened(), self.record)

    def job(self, *do: dict[str, Any], undo: tuple[dict[str, Any], ...] = ()) -> list[dict[str, Any]]:
        """The events of a job with these operations, to its end."""
        spec = {
            "version": 1,
            "run": self.run,
            "workload": workload(**self.changes).as_data(),
            "who": WHO,
            "do": list(do),
            "undo": list(undo),
        }
        return list(self.session.follow("job", job=spec, events=[]))

    def golive(self, piece: Any) -> None:
        """Lets a job bring what a push prepared to its place."""
        ended = self.job(*Push.model_validate({"from": ".", "to": "/"}).compile(setting(), piece).do)[-1]
        assert (ended["what"], ended["status"]) == ("end", 0), ended

    def goback(self, piece: Any) -> None:
        """Takes that back, as a job does when a later step fails; in this process."""
        done = Push.model_validate({"from": ".", "to": "/"}).compile(setting(), piece).undo
        golive.goback(SimpleNamespace(run=self.run, emit=lambda *_, **__: None), done[0])

    def staged(self, path: str) -> Path:
        """Where a staged file lies until it goes live."""
        return self.live / ".deployctl" / self.run / "new" / path

    def contents(self) -> dict[str, bytes]:
        """What is below the destination, without deployctl's own place."""
        return self.contents_of(self.live)

    def contents_of(self, root: Path) -> dict[str, bytes]:
        """The same of another directory."""
        files = [path for path in root.rglob("*") if path.is_file() and ".deployctl" not in path.parts]
        return {str(path.relative_to(root)): path.read_bytes() for path in files}

    def close(self) -> None:
        """Leaves the session."""
        self.session.close()


def said(events: list[dict[str, Any]], what: str) -> list[dict[str, Any]]:
    """The events with that word."""
    return [event for event in events if event["what"] == what]


def refused(act: Callable[[], object]) -> DeployError:
    """The error that the act ends with."""
    with pytest.raises(DeployError) as caught:
        act()
    return caught.value


def _write(path: Path, content: bytes, mode: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)
    return path
