"""A controller that goes while an operation is at work: the operation ends, its child with it, and what was staged is taken back."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from deployctl.agent import procfs
from tests.agent_ops import HOME, read, until, write

AGENT = "import sys\nfrom deployctl.agent import main, wire\nwire.LEASE = float(sys.argv[1])\nmain.main('NONCE')"
RUN = "20260101-000000-aaaa"
SLEEPS = "#!/bin/sh\necho $$ > {pid}\nsleep 600 &\nexec sleep 600\n"  # as an interpreter it never answers
HUGE = 1 << 42  # bytes of a file that has none: it takes an hour to be read


class Agent:
    """An agent that has opened a run and made its place, and what it was asked last."""

    def __init__(self, home: str, lease: float = 30) -> None:
        self.home, self.live = home, os.path.join(home, "live")
        self.pid_file = os.path.join(home, "pid")
        os.makedirs(self.live)
        self.python = write(os.path.join(home, "bin", "python3"), SLEEPS.format(pid=self.pid_file).encode())
        os.chmod(self.python, 0o755)
        self.process = subprocess.Popen(
            [sys.executable, "-c", AGENT, str(lease)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
            env=dict(os.environ, PYTHONPATH=HOME),
        )  # fmt: skip
        assert self.process.stdout is not None
        self.process.stdout.readline()
        workload = {
            "name": "train", "directory": self.live, "command": ["sh", "no-such-script.sh"], "log": "a.log", "match": None, "user": None,
            "environment": {"PATH": os.path.dirname(self.python) + ":/usr/bin:/bin"},
        }  # fmt: skip
        who = {"user": "anna", "host": "lab", "pid": 1}
        self.ask("open", run=RUN, who=who, workload=workload, state=os.path.join(home, "state"))
        self.ask("place", root=self.live)
        bundle = write(os.path.join(self.live, ".deployctl", RUN, "bundle"), b"x = 1\n")
        file = {"path": "a.py", "size": 6, "executable": False, "sha256": hashlib.sha256(b"x = 1\n").hexdigest()}
        self.ask("stage", root=self.live, bundle=bundle, packed=0, files=[file], owner=None, group=None, mode=None)

    def say(self, op: str, **request: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(dict(request, id=1, op=op, target="here")).encode() + b"\n")

    def ask(self, op: str, **request: Any) -> Any:
        self.say(op, **request)
        assert self.process.stdout is not None
        answer = json.loads(self.process.stdout.readline())
        assert "answer" in answer, answer
        return answer["answer"]

    def begin(self, what: str) -> int:
        """Sends it into something that lasts; the pid of its child, once that is there, or its own."""
        if what == "command":
            self.say("verify", compile=False, command=[self.python], time=600)
        elif what == "compile":
            self.say("verify")
        elif what == "hash":
            with open(os.path.join(self.live, "huge"), "wb") as huge:
                huge.truncate(HUGE)
            file = {"path": "huge", "size": HUGE, "executable": False}
            self.say("manifest", root=self.live, files=[file], owner=None, group=None, mode=None)
            until(lambda: "huge" in self.open_files(), "the hashing")
            return self.process.pid
        return int(until(lambda: os.path.exists(self.pid_file) and read(self.pid_file).strip(), "the child"))

    def open_files(self) -> list[str]:
        handles = f"/proc/{self.process.pid}/fd"
        return [os.path.basename(os.path.realpath(os.path.join(handles, name))) for name in os.listdir(handles)]

    def ended(self) -> dict[str, Any]:
        """The last event of its run, once it has ended."""
        assert self.process.wait(20) == 0
        with open(os.path.join(self.home, "state", "workloads", "train", "runs", RUN + ".jsonl")) as events:
            last: dict[str, Any] = json.loads(events.readlines()[-1])
            return last

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for pid in group(int(read(self.pid_file))) if os.path.exists(self.pid_file) else []:
            os.kill(pid, signal.SIGKILL)
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()


@pytest.fixture
def agent(tmp_path: Any) -> Iterator[Agent]:
    """An agent with the usual lease."""
    made = Agent(str(tmp_path))
    yield made
    made.end()


def group(leader: int) -> list[int]:
    """The processes of a process group that live."""
    seen = [procfs.look(pid) for pid in procfs.everyone()]
    return [one["pid"] for one in seen if one and one.get("pgrp") == leader and one["state"] not in procfs.DEAD]


@pytest.mark.parametrize("what", ["command", "compile", "hash"])
def test_the_end_of_the_controller_ends_the_operation_and_takes_back_what_was_staged(agent: Agent, what: str) -> None:
    child = agent.begin(what)
    began = time.monotonic()
    assert agent.process.stdin is not None
    agent.process.stdin.close()
    last = agent.ended()
    assert time.monotonic() - began < 3
    assert (last["what"], last["outcome"], last["reason"]) == ("end", "interrupted", "the controller closed its side")
    assert [name for name in os.listdir(agent.live) if name != "huge"] == []
    until(lambda: not group(child), "the end of the child and of what it started")


def test_the_last_words_of_a_controller_that_does_not_wait_are_kept(agent: Agent) -> None:
    agent.begin("command")
    agent.say("close", events=[{"what": "failed"}, {"what": "end", "reason": "interrupted"}])
    assert agent.process.stdin is not None
    agent.process.stdin.close()
    assert agent.ended() == {"what": "end", "reason": "interrupted"}


@pytest.mark.parametrize("what", ["command", "compile", "hash"])
def test_a_silent_controller_loses_its_lease_in_the_middle_of_an_operation(tmp_path: Any, what: str) -> None:
    agent = Agent(str(tmp_path), lease=2)
    try:
        child = agent.begin(what)
        assert agent.ended()["reason"].startswith("the controller was silent")
        until(lambda: not group(child), "the end of the child and of what it started")
    finally:
        agent.end()


def test_an_operation_goes_on_for_as_long_as_the_controller_speaks(tmp_path: Any) -> None:
    agent = Agent(str(tmp_path), lease=1)
    try:
        agent.begin("command")
        began = time.monotonic()
        while time.monotonic() - began < 3:
            assert agent.process.poll() is None
            agent.say("alive")
            time.sleep(0.1)
    finally:
        agent.end()
