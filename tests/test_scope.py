"""Job and workload do not end with the login session or unit that started them: seen in the container that runs systemd."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from deployctl.agent import scope
from deployctl.errors import DeployError
from deployctl.target import Session
from deployctl.transports.local import LocalChannel
from tests.lab.lab import Lab
from tests.site import until

SLEEPER = ["/root/scope-sleeper", "613"]  # a link to sleep, so that no other sleep is meant


class InUnit:
    """A transport into a transient service unit of a container: what systemd does with a nightly timer, or with a login."""

    name = "ct210"
    container = None

    def __init__(self, lab: Lab, *properties: str) -> None:
        unit = ["systemd-run", "--quiet", "--wait", "--pipe", "--collect", *(f"--property={text}" for text in properties)]
        self._into = lab.host.inside("lxc-attach", "-n", "210", "--", *unit)

    def open(self, argv: Sequence[str]) -> LocalChannel:
        return LocalChannel([*self._into, *argv])

    def put(self, source: Path, destination: str, progress: object = None) -> None:
        raise NotImplementedError

    def explain(self, status: int, stderr: str, noise: str = "") -> DeployError:
        return DeployError(f"{status}: {stderr} {noise}")

    def close(self) -> None:
        pass


def workload() -> dict[str, object]:
    return {
        "name": "sleeper", "directory": "/root", "command": SLEEPER, "log": "/root/sleeper.log", "match": "scope-sleeper",
        "environment": {}, "user": None,
    }  # fmt: skip


def launch(session: Session) -> int:
    """Launches the sleeper through a job; its pid."""
    run, who = "20260101-000000-aaaa", {"user": "anna", "host": "lab", "pid": 1}
    session.ask("open", run=run, who=who, workload=workload())
    start = {
        "op": "launch",
        "as": "new",
        "argv": SLEEPER,
        "directory": "/root",
        "environment": {},
        "log": "/root/sleeper.log",
        "user": None,
    }
    job = {"version": 1, "run": run, "workload": workload(), "who": who, "do": [start], "undo": []}
    launched = [event["pid"] for event in session.follow("job", job=job) if event["what"] == "launched"]
    return int(launched.pop())


@pytest.mark.lab
def test_the_workload_outlives_the_unit_that_started_it(lab: Lab) -> None:
    if not lab.made["systemd"]:
        pytest.fail("the lab is up without its systemd container: `tests/lab/lab up` brings it")
    state = "/root/scope-state"
    lab.exec(210, "ln", "-sf", "/bin/sleep", SLEEPER[0])
    with Session("ct210", InUnit(lab), state=state) as session:
        pid = launch(session)
    try:
        until(
            "the unit is gone",
            lambda: not lab.exec(210, "systemctl", "list-units", "--no-legend", "--type=service", "run-u*").stdout.strip(),
        )
        cgroup = lab.exec(210, "cat", f"/proc/{pid}/cgroup").stdout.decode()
        assert "/deployctl-20260101-000000-aaaa-" in cgroup
        assert b"scope-sleeper" in lab.exec(210, "cat", f"/proc/{pid}/cmdline").stdout
    finally:
        lab.exec(210, "kill", "-KILL", str(pid), check=False)
        lab.exec(210, "rm", "-rf", state, "/root/sleeper.log", SLEEPER[0])


@pytest.mark.lab
def test_a_run_that_gets_no_scope_leaves_nothing_staged(lab: Lab) -> None:
    """systemd takes no unit whose name is longer than 255 characters."""
    run, who = "20260101-000000-" + "a" * 224, {"user": "anna", "host": "lab", "pid": 1}
    state, directory = "/root/no-scope-state", "/root/no-scope"
    try:
        with Session("ct210", InUnit(lab), state=state) as session:
            session.ask("open", run=run, who=who, workload=workload())
            session.ask("place", root=directory)
            lab.exec(210, "test", "-d", f"{directory}/.deployctl/{run}")
            files = {"op": "golive", "sets": [{"root": directory, "paths": []}]}
            job = {"version": 1, "run": run, "workload": workload(), "who": who, "do": [files], "undo": []}
            told = list(session.follow("job", job=job))
        assert [event["what"] for event in told] == ["cutover", "failed", "end"]
        assert (told[-1]["status"], told[-1]["outcome"]) == (1, "refused")
        assert "systemd gave no scope" in told[-1]["reason"]
        assert lab.exec(210, "test", "-e", f"{directory}/.deployctl", check=False).returncode
    finally:
        lab.exec(210, "rm", "-rf", state, directory)


@pytest.mark.lab
def test_a_user_who_cannot_leave_the_session_is_refused(lab: Lab) -> None:
    with Session("ct210", InUnit(lab, "User=nobody"), state="/tmp/nobody-state") as session:
        answer = session.ask("look", workload=workload())
    assert "only root may leave it" in answer["faults"]["scope"]["what"]


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("0::/user.slice/user-1000.slice/session-3.scope", "session-3.scope"),
        ("1:name=systemd:/system.slice/ssh.service", "ssh.service"),
        ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/x.scope", "user@1000.service"),
        ("0::/deployctl-20260101-000000-aaaa.scope", None),
        ("0::/system.slice/deployctl-20260101-000000-aaaa.scope", None),
        ("0::/", None),
        ("0::/.lxc", None),
        ("4:memory:/system.slice/ssh.service", None),
    ],
)
def test_a_session_or_unit_is_a_borrowed_place(path: str, place: str | None) -> None:
    assert scope.borrowed(path) == place
