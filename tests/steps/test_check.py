"""check: what was launched lives, and says so in its log; what was there before this launch proves nothing."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deployctl.steps.check import Check
from deployctl.steps.launch import Launch
from tests.steps import Talk, refusal, said, setting, steps_of, until

# --- the model


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("", Check(alive="5s", log=None, within="60s")),
        (": {alive: 10s, log: 'step \\d+', within: 2m}", Check(alive="10s", log="step \\d+", within="2m")),
        (": {alive: 500ms}", Check(alive="500ms")),
    ],
)
def test_a_check_is_its_three_keys(tmp_path: Path, fields: str, expected: Check) -> None:
    assert steps_of(tmp_path, f"  - launch\n  - check{fields}\n")[1] == expected


@pytest.mark.parametrize(
    ("fields", "line", "what", "todo"),
    [
        ("\n      alive: 10\n", 9, "check: alive: '10' is no duration", "write '10s' for seconds"),
        ("\n      log: 'step [0-9'\n", 9, "check: log: 'step [0-9' is no regular expression: unterminated character set", "Python's re"),
        ("\n      log: 5\n", 9, "check: log: wants a text, not '5'", "in quotes"),
        ("\n      alive: 1s\n      whitin: 5s\n", 10, "check: 'whitin' is no key of check", "did you mean 'within'?"),
        (" 10s\n", 8, "check: wants a map of keys and values, not '10s'", "a map"),
    ],
)
def test_a_faulty_check_is_refused_in_its_line(tmp_path: Path, fields: str, line: int, what: str, todo: str) -> None:
    said = refusal(tmp_path, f"  - launch\n  - check:{fields}")
    assert said[0] == line
    assert said[1].startswith(what)
    assert todo in said[2]


def test_a_check_without_a_launch_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, "  - stop\n  - check\n") == (8, "check: there is no 'launch' before it", "write '- launch' above it")


# --- compile


@pytest.mark.parametrize(("alive", "within", "bound"), [("5s", "60s", 60), ("2m", "60s", 120), ("0s", "0s", 0)])
def test_the_bound_is_never_below_alive(alive: str, within: str, bound: float) -> None:
    done = Check(alive=alive, within=within, log="x").compile(setting(), None)
    assert done.do == ({"op": "check", "alive": Check(alive=alive).alive, "log": "x", "within": bound},)
    assert done.undo == ()


# --- in a target


class Place:
    """A place where one program is launched and checked."""

    def __init__(self, home: Path) -> None:
        self.home, self.pids = home, list[int]()
        self.log = home / "a.log"

    def check(self, body: str, **fields: Any) -> list[dict[str, Any]]:
        """The events of a job that launches a program of that text and checks it."""
        (self.home / "a.py").write_text(f"import os, sys, time\n{body}\n")
        plan = {"directory": str(self.home), "command": ("python3", "a.py"), "match": "no-such.py", "log": "a.log"}
        talk = Talk(self.home, **plan)
        step = Check.model_validate(fields)
        events = talk.job(*Launch().compile(setting(**plan), None).do, *step.compile(setting(**plan), None).do)
        talk.close()
        self.pids += [event["pid"] for event in said(events, "launched")]
        return events

    def end(self) -> None:
        for pid in self.pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        until("all has ended", lambda: not any(os.path.exists(f"/proc/{pid}") for pid in self.pids))


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A place; what was launched there is ended afterwards."""
    made = Place(tmp_path)
    yield made
    made.end()


SLEEP = "time.sleep(600)"


def test_a_program_that_lives_long_enough_passes(place: Place) -> None:
    events = place.check(SLEEP, alive="500ms")
    [checked] = said(events, "checked")
    assert checked["alive"] >= 0.5
    assert events[-1]["status"] == 0


def test_the_line_of_this_launch_is_found(place: Place) -> None:
    events = place.check(f"print('loading')\ntime.sleep(0.3)\nprint('step 17 done')\n{SLEEP}", alive="100ms", log=r"step \d+", within="20s")
    assert said(events, "checked")[0]["line"] == "step 17 done"


def test_a_line_from_before_this_launch_proves_nothing(place: Place) -> None:
    place.log.write_text("step 1\n")
    events = place.check(SLEEP, alive="100ms", log=r"step \d+", within="1s")
    assert said(events, "checked") == []
    assert said(events, "failed")[0]["why"] == r"no line of the log matches 'step \d+' within 1 s"


def test_a_line_alone_is_not_enough_to_be_alive(place: Place) -> None:
    events = place.check("print('step 1')\ntime.sleep(0.5)", alive="3s", log="step", within="10s")
    assert said(events, "checked") == []


@pytest.mark.parametrize(("end", "expected"), [("sys.exit(3)", {"status": 3}), ("os.abort()", {"signal": 6})])
def test_a_program_that_ends_is_shown_with_its_end_and_its_last_lines(place: Place, end: str, expected: dict[str, int]) -> None:
    events = place.check(f"print('\\n'.join(map(str, range(50))), flush=True)\ntime.sleep(0.2)\n{end}", alive="5s")
    [failed] = said(events, "failed")
    assert " ended after " in failed["why"]
    assert {key: failed["exit"][key] for key in ("status", "signal") if key in failed["exit"]} == expected
    assert failed["tail"][-2:] == ["48", "49"]
    assert len(failed["tail"]) == 20


def test_a_line_that_comes_in_two_pieces_is_one_line(place: Place) -> None:
    events = place.check(f"os.write(1, b'ste')\ntime.sleep(0.4)\nos.write(1, b'p 1\\n')\n{SLEEP}", alive="0s", log="^step 1$", within="20s")
    assert said(events, "checked")[0]["line"] == "step 1"


def test_a_log_that_its_program_truncates_is_read_from_its_start(place: Place) -> None:
    place.log.write_text("x" * 100_000 + "\n")
    events = place.check(f"os.truncate('a.log', 0)\ntime.sleep(0.3)\nprint('step 1')\n{SLEEP}", alive="0s", log="^step 1$", within="20s")
    assert said(events, "checked")[0]["line"] == "step 1"


def test_odd_bytes_in_the_log_hurt_nobody(place: Place) -> None:
    events = place.check(f"os.write(1, b'\\xff\\x00\\x1b[31m step 1\\n')\n{SLEEP}", alive="0s", log="step 1", within="20s")
    assert said(events, "checked")[0]["line"] == "�\x00\x1b[31m step 1"


def test_a_flood_of_lines_does_not_hide_the_one(place: Place) -> None:
    flood = "for _ in range(200): os.write(1, b'noise ' * 2000 + b'\\n')"
    events = place.check(f"{flood}\nprint('step 1')\n{flood}\n{SLEEP}", alive="0s", log="^step 1$", within="20s")
    assert said(events, "checked")[0]["line"] == "step 1"
