"""stop: the ladder as it is written, as it is refused, as it is compiled; and what one rung does to a process without a `match`."""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deployctl.errors import RefusedError
from deployctl.steps.stop import Stop
from deployctl.workload import DEFAULT_LADDER, Rung
from tests.steps import Talk, opened, refusal, said, setting, steps_of, until

SEEN = {"pid": 4, "started": 5}


def stop(*rungs: str, **fields: Any) -> Stop:
    return Stop.model_validate(Stop.expand({"ladder": list(rungs), **fields}))


# --- the model


@pytest.mark.parametrize(
    ("steps", "ladder"),
    [
        ("  - stop\n", DEFAULT_LADDER),
        ("  - stop: [INT 180s, TERM 30s]\n", (Rung("INT", 180), Rung("TERM", 30))),
        ("  - stop: [sigint 1m30s, SIGKILL 500ms]\n", (Rung("INT", 90), Rung("KILL", 0.5))),
        ("  - stop: {ladder: [USR1 2s]}\n", (Rung("USR1", 2),)),
        ("  - stop: [{signal: HUP, wait: 1h}]\n", (Rung("HUP", 3600),)),
        ("  - stop:\n    - INT   5s\n", (Rung("INT", 5),)),
    ],
)
def test_a_ladder_can_be_written_short(tmp_path: Path, steps: str, ladder: tuple[Rung, ...]) -> None:
    [step] = steps_of(tmp_path, steps)
    assert isinstance(step, Stop)
    assert step.rungs() == ladder


@pytest.mark.parametrize(
    ("steps", "line", "what", "todo"),
    [
        ("  - stop: []\n", 7, "stop: ladder: there is too little here", "at least 1"),
        ("  - stop:\n    - INT\n", 7, "stop: 'INT' is no rung", "'INT 180s'"),
        ("  - stop: [INT 5s now]\n", 7, "stop: 'INT 5s now' is no rung", "'INT 180s'"),
        ("  - stop:\n    - INT 5s\n    - TREM 5s\n", 9, "stop: ladder[1]: 'TREM' is no signal", "did you mean 'TERM'?"),
        ("  - stop:\n    - INT 180\n", 8, "stop: ladder[0]: '180' is no duration", "write '180s' for seconds"),
        ("  - stop:\n    - INT -5s\n", 8, "stop: ladder[0]: '-5s' is no duration", "30s"),
        ("  - stop: {ladder: }\n", 7, "stop: ladder: wants a list, not nothing", ""),
        ("  - stop: {to: everyone}\n", 7, "stop: to: 'everyone' is not 'main', 'top', 'ranks', 'group' or 'hold-agent'", ""),
        ("  - stop:\n    - {signal: INT, wait: 5s, only_if: zombi}\n", 8, "stop: ladder[0]: only_if: 'zombi' is no verdict", "zombie"),
        ("  - stop:\n      lader: [INT 5s]\n", 8, "stop: 'lader' is no key of stop", "did you mean 'ladder'?"),
        ("  - stop:\n    - {signal: INT}\n", 8, "stop: ladder[0]: 'wait' is missing", "add 'wait: …'"),
        ("  - stop:\n    - 9\n", 8, "stop: ladder[0]: wants a map of keys and values, not '9'", ""),
    ],
)
def test_a_faulty_ladder_is_refused_in_its_line(tmp_path: Path, steps: str, line: int, what: str, todo: str) -> None:
    said = refusal(tmp_path, steps)
    assert said[:2] == (line, what)
    assert todo in said[2]


def test_a_ladder_that_is_one_text_is_told_that_it_must_be_a_list(tmp_path: Path) -> None:
    line, _, todo = refusal(tmp_path, "  - stop: INT 180s\n")
    assert line == 7
    assert "list" in todo


# --- admit and compile


def admit(found: Any, rollback: bool = True) -> None:
    stop("INT 5s").admit(setting(rollback=rollback), found, lambda *_, **__: None)


def test_an_unclear_process_is_refused_before_anything_is_prepared() -> None:
    with pytest.raises(RefusedError, match="there: a fault of process"):
        admit(opened(faults=("process",)))


def test_a_process_that_could_not_be_brought_back_is_refused() -> None:
    with pytest.raises(RefusedError, match="a fault of capture"):
        admit(opened(SEEN, faults=("capture",)))


def test_without_rollback_nothing_must_be_brought_back() -> None:
    admit(opened(SEEN, faults=("capture",)), rollback=False)


def test_a_faulty_program_is_no_matter_of_the_stop() -> None:
    admit(opened(SEEN, faults=("program", "interpreter")))


def test_the_stop_carries_its_ladder_in_seconds() -> None:
    [do] = stop("INT 1m", "KILL 10s").compile(setting(), None).do
    assert (do["op"], do["who"]) == ("stop", "before")
    assert do["ladder"] == [{"signal": "INT", "wait": 60.0}, {"signal": "KILL", "wait": 10.0}]


def test_a_map_without_a_ladder_has_the_default_one() -> None:
    step = Stop.model_validate(Stop.expand({"to": "ranks"}))
    assert ([item.signal for item in step.ladder], step.to) == (["INT", "TERM", "KILL"], "ranks")


TREE = {"members": [], "main": 7, "to": {}, "objections": {"group": "its process group holds a stranger"}, "clock": 30.0}


def test_a_group_that_holds_a_stranger_is_refused_in_prepare() -> None:
    step = Stop.model_validate(Stop.expand({"to": "group"}))
    with pytest.raises(RefusedError, match="a stranger"):
        step.admit(setting(), replace(opened(SEEN), tree=TREE), lambda *_, **__: None)


def test_a_launcher_with_a_shorter_clock_is_told_of() -> None:
    told = []
    stop("INT 3m").admit(setting(), replace(opened(SEEN), tree=TREE), lambda what, **fields: told.append((what, fields["seconds"])))
    assert told == [("launcher-clock", 30.0)]


@pytest.mark.parametrize("expected", [True, False])
def test_who_would_start_it_again_is_named_and_refused(expected: bool) -> None:
    found = replace(opened(SEEN), tree=TREE, respawn={"kind": "unit", "name": "train.service", "pid": 9, "how": "Restart=always"})
    step = Stop.model_validate(Stop.expand({"respawn": "expected"} if expected else {}))
    refused = pytest.raises(RefusedError, match=r"unit 'train.service' .* Restart=always")
    with nullcontext() if expected else refused:
        step.admit(setting(), found, lambda *_, **__: None)


def test_what_undoes_a_stop_is_the_old_process_and_a_look_at_it() -> None:
    undo = stop("INT 5s").compile(setting(), None).undo
    assert [(operation["op"], operation.get("as")) for operation in undo] == [("launch", "before"), ("check", None)]


def test_a_stop_is_described_by_its_ladder() -> None:
    described = stop("INT 5s").describe()
    assert (described["step"], described["ladder"]) == ("stop", [{"signal": "INT", "wait": 5.0}])


# --- in a target


class Program:
    """A program whose script has a name of its own, in a directory, with workers if wanted."""

    def __init__(self, home: Path, body: str) -> None:
        self.script = f"train_{secrets.token_hex(4)}.py"
        (home / self.script).write_text(f"import os, signal, sys, time\n{body}\nprint('ready', flush=True)\ntime.sleep(600)\n")
        self.process = subprocess.Popen([sys.executable, self.script], cwd=home, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"ready\n"

    def gone(self) -> bool:
        return self.process.poll() is not None

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """A program that INT ends with status 3."""
    made = Program(tmp_path, "signal.signal(signal.SIGINT, lambda *_: sys.exit(3))")
    yield made
    made.end()


def stopped(home: Path, program: Program, *rungs: str, **changes: Any) -> list[dict[str, Any]]:
    """The events of a job that only stops the program."""
    talk = Talk(home, directory=str(home), command=(sys.executable, program.script), **changes)
    events = talk.job(*stop(*rungs, linger="0s").compile(setting(), None).do)
    talk.close()
    return events


@pytest.mark.parametrize("named", [True, False], ids=["match", "command"])
def test_a_program_is_stopped_that_was_started_by_hand(tmp_path: Path, program: Program, named: bool) -> None:
    events = stopped(tmp_path, program, "INT 20s", match=program.script if named else None)
    assert events[-1]["outcome"] == "stopped"
    assert [event["by"] for event in said(events, "stopped")] == ["INT"]
    until("the program has ended", program.gone)
    assert program.process.returncode == 3


def test_a_program_of_another_name_is_left_alone(tmp_path: Path, program: Program) -> None:
    events = stopped(tmp_path, program, "INT 20s", match="no-such-script.py")
    assert [event["what"] for event in events if event["what"] not in ("cutover", "op", "end")] == ["not-running"]
    assert not program.gone()


def test_the_next_rung_waits_for_the_one_before(tmp_path: Path) -> None:
    program = Program(tmp_path, "signal.signal(signal.SIGTERM, lambda *_: None)")
    events = stopped(tmp_path, program, "TERM 1s", "KILL 10s", match=program.script)
    first, second = (event["t"] for event in said(events, "rung"))
    assert second - first >= 1
    assert [event["by"] for event in said(events, "stopped")] == ["KILL"]
    program.end()


def test_a_stop_of_a_program_that_ends_at_once_took_a_moment(tmp_path: Path) -> None:
    for _ in range(12):  # the end may come between two looks
        program = Program(tmp_path, "signal.signal(signal.SIGINT, lambda *_: os._exit(0))")
        events = stopped(tmp_path, program, "INT 20s", match=program.script)
        program.end()
        assert 0 <= said(events, "stopped")[0]["seconds"] < 20
        assert events[-1]["outcome"] == "stopped"
