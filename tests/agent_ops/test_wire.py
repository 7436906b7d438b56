"""The wire: JSON lines, a lease, and an end of the talk that is noticed whatever came before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from deployctl.agent import wire
from deployctl.agent.main import Session
from tests.agent_ops import HOME, until

AGENT = "from deployctl.agent.main import main; main('NONCE')"


class Talk:
    """A wire of the agent, and the controller's ends of it."""

    def __init__(self) -> None:
        self.source, self.to_agent = os.pipe()
        self.from_agent, self.sink = os.pipe()
        self.wire = wire.Wire(self.source, self.sink)

    def say(self, data: bytes) -> None:
        os.write(self.to_agent, data)

    def heard(self) -> bytes:
        return os.read(self.from_agent, 1 << 16)

    def end(self) -> None:
        for handle in (self.source, self.to_agent, self.from_agent, self.sink):
            try:
                os.close(handle)
            except OSError:
                pass  # the test closed it


@pytest.fixture
def talk() -> Iterator[Talk]:
    """A wire whose lease is the usual one."""
    made = Talk()
    yield made
    made.end()


@pytest.fixture
def short_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "LEASE", 0.3)


def test_requests_come_one_by_one(talk: Talk) -> None:
    talk.say(b'{"id": 1, "op": "a"}\n{"id": 2, "op": "b"}\n')
    assert talk.wire.next() == {"id": 1, "op": "a"}
    assert talk.wire.next() == {"id": 2, "op": "b"}


def test_a_request_may_come_in_pieces(talk: Talk) -> None:
    for piece in (b'{"id"', b': 1, "op": "', b"\xc3", b'\xa4"}', b"\n"):
        assert talk.wire.next(timeout=0) is None
        talk.say(piece)
    assert talk.wire.next() == {"id": 1, "op": "ä"}


def test_a_sign_of_life_is_no_request(talk: Talk) -> None:
    talk.say(b'{"op": "alive"}\n{"id": 1, "op": "a"}\n')
    assert talk.wire.next() == {"id": 1, "op": "a"}
    talk.say(b'{"op": "alive"}\n')
    assert talk.wire.next(timeout=0.05) is None


def test_it_is_quiet_until_something_waits_to_be_heard(talk: Talk) -> None:
    assert talk.wire.quiet()
    talk.say(b'{"id": 1, "op": "a"}\n{"id": 2, "op": "b"}\n')
    assert not talk.wire.quiet()
    talk.wire.next()
    assert not talk.wire.quiet(), "the second one was read with the first"
    talk.wire.next()
    assert talk.wire.quiet()
    os.close(talk.to_agent)
    assert not talk.wire.quiet(), "the end is to be heard"


def test_a_run_compiles_ahead_while_nothing_waits_to_be_heard(talk: Talk) -> None:
    session = Session(talk.wire)
    session.look_ahead()
    assert session.ahead, "who only looks needs none of it"
    session.events = object()  # type: ignore[assignment]
    talk.say(b'{"id": 1, "op": "close"}\n')
    session.look_ahead()
    assert session.ahead
    talk.wire.next()
    session.look_ahead()
    assert not session.ahead


def test_nothing_comes_within_the_time(talk: Talk) -> None:
    began = time.monotonic()
    assert talk.wire.next(timeout=0.1) is None
    assert time.monotonic() - began >= 0.1


def test_another_descriptor_ends_the_wait(talk: Talk) -> None:
    bell, ring = os.pipe()
    os.write(ring, b".")
    assert talk.wire.next(timeout=20, also=bell) is None
    talk.say(b'{"id": 1, "op": "a"}\n')
    assert talk.wire.next(timeout=20, also=bell) == {"id": 1, "op": "a"}
    os.close(bell)
    os.close(ring)


def test_the_end_of_input_is_a_hang_up(talk: Talk) -> None:
    talk.say(b'{"id": 1, "op": "a"}\n{"id": 2, "o')
    os.close(talk.to_agent)
    assert talk.wire.next() == {"id": 1, "op": "a"}
    with pytest.raises(wire.HungUp, match="closed its side"):
        talk.wire.next()


def test_a_silent_controller_loses_its_lease(talk: Talk, short_lease: None) -> None:
    began = time.monotonic()
    with pytest.raises(wire.HungUp, match="silent"):
        talk.wire.next()
    assert 0.3 <= time.monotonic() - began < 10


def test_signs_of_life_keep_the_lease(talk: Talk, short_lease: None) -> None:
    began = time.monotonic()
    while time.monotonic() - began < 1:
        talk.say(b'{"op": "alive"}\n')
        assert talk.wire.next(timeout=0.1) is None


def test_half_a_line_keeps_the_lease_too(talk: Talk, short_lease: None) -> None:
    began = time.monotonic()
    while time.monotonic() - began < 1:
        talk.say(b" ")
        assert talk.wire.next(timeout=0.1) is None


def test_what_was_said_while_we_worked_keeps_the_lease(talk: Talk, short_lease: None) -> None:
    talk.say(b'{"op": "alive"}\n')
    talk.wire._heard -= 1  # the time of an operation
    assert talk.wire.next(timeout=0.05) is None


def test_who_works_hears_what_is_said_later(talk: Talk) -> None:
    talk.say(b'{"op": "alive"}\n{"id": 1, "op": "a"}\n')
    talk.wire.heed()
    assert talk.wire.next(timeout=0) == {"id": 1, "op": "a"}


def test_who_works_hears_that_the_controller_is_gone(talk: Talk) -> None:
    talk.say(b'{"id": 1, "op": "close"}\n')
    os.close(talk.to_agent)
    with pytest.raises(wire.HungUp, match="closed its side"):
        talk.wire.heed()
    assert talk.wire.next(timeout=0) == {"id": 1, "op": "close"}, "its last words are kept"


def test_who_works_hears_that_the_lease_is_over(talk: Talk, short_lease: None) -> None:
    talk.wire.heed()
    talk.wire._heard -= 1
    with pytest.raises(wire.HungUp, match="silent"):
        talk.wire.heed()


def test_who_works_takes_no_more_in_than_a_piece(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "LARGEST", 1000)
    talk.say(b"x" * 60_000)
    talk.wire.heed()
    talk.say(b"y" * 60_000)
    talk.wire.heed()
    assert not talk.wire.quiet()
    assert len(os.read(talk.source, 1 << 17)) == 60_000, "the second one waits in the pipe"


@pytest.mark.parametrize("garbage", [b"no json\n", b"5\n", b"\xff\xfe\n"])
def test_garbage_ends_the_talk_in_order(talk: Talk, garbage: bytes) -> None:
    talk.say(garbage)
    with pytest.raises(wire.HungUp):
        talk.wire.next(timeout=5)


def test_a_message_is_one_line_of_ascii(talk: Talk) -> None:
    talk.wire.send({"a": "ä\n\udcff"})
    line = talk.heard()
    assert line.count(b"\n") == 1
    assert json.loads(line.decode("ascii")) == {"a": "ä\n\udcff"}


def test_a_reader_who_is_gone_is_a_hang_up(talk: Talk) -> None:
    os.close(talk.from_agent)
    with pytest.raises(wire.HungUp, match="reads no more"):
        talk.wire.send({"a": 1})


# --- a whole session

CUT = {"id": 1, "op": "open", "target": "here", "run": "20260101-000000-aaaa", "who": {"user": "anna", "host": "lab", "pid": 1}}
WORKLOAD = {
    "name": "train", "directory": "/", "command": ["sh", "no-such-script.sh"], "log": "a.log", "match": None, "environment": {},
    "user": None,
}  # fmt: skip


class Agent:
    """An agent as a child process, spoken to line by line."""

    def __init__(self, state: str) -> None:
        self.state = state
        argv = [sys.executable, "-c", AGENT]
        environment = dict(os.environ, PYTHONPATH=HOME)
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, bufsize=0
        )
        self.marker = self.line()

    def say(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    def line(self) -> bytes:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def ask(self, **request: Any) -> Any:
        self.say(json.dumps(request).encode() + b"\n")
        return json.loads(self.line())

    def stage(self, root: str) -> None:
        """Opens a run and makes its place."""
        assert "answer" in self.ask(**CUT, workload=WORKLOAD, state=self.state)
        assert "answer" in self.ask(id=2, op="place", root=root)
        assert os.listdir(root) == [".deployctl"]

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()


@pytest.fixture
def agent(tmp_path: Any) -> Iterator[Agent]:
    """An agent whose state is in a directory of the test."""
    made = Agent(str(tmp_path / "state"))
    yield made
    made.end()


def test_the_marker_comes_first(agent: Agent) -> None:
    word, nonce, hello = agent.marker.split(b" ", 2)
    assert (word, nonce) == (b"deployctl-agent", b"NONCE")
    assert json.loads(hello)["python"] == ".".join(str(part) for part in sys.version_info[:3])


@pytest.mark.parametrize("request_", [{"op": "no-such-op"}, {"op": "manifest"}, {"op": "stage", "root": "/", "bundle": "/x", "files": []}])
def test_a_request_that_makes_no_sense_is_answered_and_the_talk_goes_on(agent: Agent, request_: dict[str, Any]) -> None:
    answer = agent.ask(id=1, **request_)
    assert (answer["id"], "error" in answer) == (1, True)
    assert agent.ask(id=2, op="close") == {"id": 2, "answer": {}}


def test_an_operation_that_is_none_is_called_wrong(agent: Agent) -> None:
    assert agent.ask(id=1, op="no-such-op")["error"]["kind"] == "wrong"


@pytest.mark.parametrize("end", [b"no json\n", b"5\n", b'{"id": 3}\n', b""], ids=["text", "number", "no-op", "eof"])
def test_a_talk_that_ends_badly_leaves_nothing_staged_and_says_so(agent: Agent, tmp_path: Any, end: bytes) -> None:
    os.makedirs(str(tmp_path / "live"))
    agent.stage(str(tmp_path / "live"))
    agent.say(end)
    assert agent.process.stdin is not None
    agent.process.stdin.close()
    until(lambda: agent.process.poll() is not None, "the end of the agent")
    assert os.listdir(str(tmp_path / "live")) == []
    with open(str(tmp_path / "state/workloads/train/runs/20260101-000000-aaaa.jsonl")) as events:
        assert json.loads(events.readlines()[-1])["what"] == "end"


def test_a_close_takes_the_last_events_along(agent: Agent, tmp_path: Any) -> None:
    os.makedirs(str(tmp_path / "live"))
    agent.stage(str(tmp_path / "live"))
    assert agent.ask(id=3, op="close", events=[{"what": "end", "status": 1}]) == {"id": 3, "answer": {}}
    until(lambda: agent.process.poll() is not None, "the end of the agent")
    with open(str(tmp_path / "state/workloads/train/runs/20260101-000000-aaaa.jsonl")) as events:
        assert json.loads(events.readlines()[-1]) == {"what": "end", "status": 1}
