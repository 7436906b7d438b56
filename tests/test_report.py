"""Events as lines: every word says something, and nothing that a target sends reaches the terminal as a command."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deployctl.errors import DeployError
from deployctl.report import faults, text
from deployctl.report.lines import ENDS, line
from deployctl.report.screen import Quiet, Screen, as_json

ROOT = Path(__file__).parent.parent
BASE = {"v": 1, "t": 1764439200.5, "run": "20260101-000000-aaaa", "target": "ct200", "phase": "cutover"}
SEEN = {"pid": 42, "started": 5, "argv": ["python3", "train.py"], "since": 1764439000.0, "ignored": ["INT"]}

# One event of each word, with the fields of docs/architecture.md and of those who say it.
EVENTS: dict[str, dict[str, Any]] = {
    "begin": {
        "playbook": "restart",
        "workload": "train",
        "flags": {},
        "who": {"user": "anna", "host": "lab", "pid": 1},
        "target_kind": "ct",
    },
    "connected": {"python": "3.11.2", "executable": "/usr/bin/python3", "container": 200, "node": "trainer"},
    "locked": {"workload": "train", "seconds": 0.1},
    "found": {"process": SEEN, "how": "record", "run_of": "20251231-000000-bbbb"},
    "program": {"path": "/opt/v/bin/python3", "prefix": "/opt/v"},
    "flags": {"kept": {"lr": ["1e-4"]}, "dropped": {"--": ["--x", "--y=a b"]}, "command": ["t", "--lr=1e-4"]},
    "environment": {"base": "inherit", "lost": ["CUDA_HOME"], "changed": ["HF_HOME"]},
    "chosen": {"flag": "resume", "path": "a/2.pt", "found": True, "passed": [{"path": "a/3.pt", "why": "is open in a process"}]},
    "unchanged": {"files": 2, "destination": "/srv/a"},
    "sending": {"sent": 1_000_000, "of": 5_000_000, "destination": "/srv/a"},
    "staged": {"files": 2, "changed": ["a.py"], "gone": ["b.py"], "bytes": 1200, "sent": 600, "seconds": 0.1, "destination": "/srv/a"},
    "verified": {
        "files": 1,
        "interpreter": "/usr/bin/python3",
        "version": "3.11.2",
        "seconds": 0.1,
        "warnings": [{"path": "a.py", "what": "it is empty"}],
        "imported": ["train"],
        "command": ["true"],
    },
    "busy": {"why": "bob@lab holds the workload", "patience": 60.0},
    "moved": {"container": 200, "node": "pve2", "host": "pve2"},
    "started": {"container": 200, "seconds": 2.5},
    "snapshot": {"name": "deployctl-20260101-000000-aaaa", "container": 200, "seconds": 0.7},
    "snapshot-skipped": {"why": "the target is no container"},
    "pruned": {"names": ["deployctl-20251231-000000-bbbb"], "keep": 3, "trouble": None},
    "restoring": {"to": None, "undone": ["20251231-000000-bbbb"], "changed": ["/srv/a/a.py"], "gone": []},
    "unfinished": {"left": "20251231-000000-bbbb", "op": "stop", "list": "do"},
    "cutover": {"job_pid": 43, "started": 5, "boot": "x", "again": False},
    "job-died": {"job_pid": 43, "life": 1},
    "op": {"op": "goback", "index": 0, "list": "undo"},
    "signalled": {"signal": "INT", "index": 0},
    "rung": {"signal": "INT", "wait": 180.0, "index": 0, "pids": [42]},
    "rung-skipped": {"signal": "INT", "index": 0, "verdict": "signal-ignored", "detail": "inherited"},
    "launcher-clock": {"pid": 42, "seconds": 30.0, "wait": 180.0},
    "again": {"signal": "INT", "index": 0},
    "hurried": {"signal": "INT", "index": 0, "verdict": "signal-blocked", "detail": None},
    "protected": {"signal": "TERM", "index": 1, "files": ["/srv/a.tmp"], "seconds": 600.0},
    "unprotected": {"signal": "TERM", "index": 1, "files": ["/srv/a.tmp"], "seconds": 600.0},
    "waiting": {"elapsed": 5.0, "wait": 180.0, "state": "S", "cpu": 0.5, "written": 1000, "alive": [42]},
    "stopped": {"seconds": 3.0, "by": "INT", "verdict": "stopped-dirty", "detail": "crashed", "exit": {"signal": 11}},
    "not-running": {},
    "not-stopped": {"verdict": "traced", "detail": "runs", "pids": [42], "evidence": ["TracerPid 7"], "taken": ["INT"]},
    "lingering": {"seconds": 3600.0, "verdict": "unexplained", "detail": None},
    "cancelled": {"op": "check", "why": "cancelled by bob@lab", "who": {"user": "bob", "host": "lab"}},
    "live": {"files": 2, "removed": 1, "sets": []},
    "back": {"files": 2, "sets": []},
    "launched": {
        "pid": 44,
        "argv": ["python3", "a b.py"],
        "directory": "/srv/a",
        "log": "/srv/a/a.log",
        "log_offset": 0,
        "environment": [],
    },
    "checking": {
        "elapsed": 5.0,
        "alive_for": 10.0,
        "within": 60.0,
        "line": None,
        "waits": [{"check": "port 80", "seen": "nothing of the workload listens on port 80"}],
    },
    "checked": {
        "alive": 10.0,
        "line": "step 17",
        "seconds": 10.0,
        "passed": ["log", "tokens/s"],
        "metric": {"name": "tokens/s", "before": 1000.0, "after": 950.0},
    },
    "failed": {
        "op": "check",
        "why": "pid 44 ended",
        "where": "check: a.log",
        "todo": "see the log",
        "tail": ["Traceback"],
        "exit": {"status": 3},
    },
    "end": {"status": 1, "outcome": "rolled-back", "process": {"pid": 45, "argv": ["python3"]}, "down": 3.5, "reason": "pid 44 ended"},
}


def event(what: str, **changes: Any) -> dict[str, Any]:
    return {**BASE, "what": what, **EVENTS.get(what, {}), **changes}


def shown(*events: dict[str, Any]) -> str:
    out = io.StringIO()
    screen = Screen(out)
    for item in events:
        screen(item)
    return out.getvalue()


def documented() -> set[str]:
    """The words of the table of events."""
    table = (ROOT / "docs" / "architecture.md").read_text().partition("## 6. Events")[2]
    rows = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    return {word for row in rows for word in re.findall(r"`([a-z-]+)`", row)}


# --- every word


def test_every_word_of_the_page_is_tried_here() -> None:
    assert documented() == set(EVENTS)


@pytest.mark.parametrize("what", [word for word in EVENTS if word != "signalled"])  # `rung` has said it
def test_every_word_gives_a_line(what: str) -> None:
    said = line(event(what))
    assert said is not None
    assert said.text
    assert "None" not in said.text
    assert said.text in shown(event(what))


def test_an_operation_is_said_when_it_is_undone_only() -> None:
    assert line(event("op", list="do")) is None
    assert shown(event("op", list="do")) == ""


def test_a_word_of_a_newer_agent_is_shown_as_it_is() -> None:
    assert "from-the-future" in shown(event("from-the-future", anything=1))


def test_every_outcome_of_the_page_has_a_sentence() -> None:
    [outcomes] = re.findall(r"^`outcome`: (.*)$", (ROOT / "docs" / "architecture.md").read_text(), re.MULTILINE)
    assert set(re.findall(r"`([a-z-]+)`", outcomes)) == set(ENDS)


@pytest.mark.parametrize("outcome", ENDS)
def test_the_last_line_begins_with_the_target_and_says_the_outcome(outcome: str) -> None:
    assert shown(event("end", outcome=outcome)).startswith(f"ct200: {ENDS[outcome]}")


def test_the_last_line_says_what_runs_and_how_long_it_was_down() -> None:
    said = shown(event("end", status=0, outcome="running", process={"pid": 45, "argv": ["python3", "a b.py", "--x=1"]}, reason=None))
    assert said == "ct200: the workload runs as pid 45: python3 'a b.py' --x=1; it was down for 3.5 s\n"


def test_a_rollback_to_nothing_does_not_say_that_something_runs() -> None:
    said = shown(event("end", outcome="rolled-back", process=None))
    assert "rolled back: nothing of the workload runs, as before" in said
    assert "runs again" not in said


def test_the_end_shows_what_was_measured_before_and_after() -> None:
    metrics = [{"name": "tokens/s", "before": 1000.0, "after": 912.5}, {"name": "loss", "before": None, "after": 2.5}]
    assert shown(event("end", metrics=metrics)).endswith("; tokens/s 1000 before, 912.5 after; loss not known before, 2.5 after\n")


def test_a_failed_check_shows_its_end_and_the_log() -> None:
    said = shown(event("failed"))
    assert "check: a.log: pid 44 ended" in said
    assert "exit: status 3" in said
    assert "log: Traceback" in said
    assert "do: see the log" in said


def test_a_process_that_ignores_int_is_told_before_the_stop() -> None:
    assert "it ignores INT" in shown(event("found"))
    assert "ignores" not in shown(event("found", process={**SEEN, "ignored": ["HUP"]}))


def test_the_time_is_that_since_the_run_began() -> None:
    said = shown(event("begin", t=100.0), event("locked", t=101.4), event("locked", t=99.0))
    assert [row.split(" s ")[0].strip() for row in said.splitlines()] == ["0.0", "1.4", "0.0"]


# --- what comes from a target is text and no more

HOSTILE = "\x1b[31mred\x1b]0;title\x07\r\n\x08\x9b2J[bold]b[/bold] :smile: \u202edlrow \udcff\x00 end"


def poisoned(value: Any) -> Any:
    """The same data, every text of it hostile."""
    if isinstance(value, str):
        return HOSTILE
    if isinstance(value, list):
        return [poisoned(item) for item in value]
    return {key: poisoned(item) for key, item in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize("what", EVENTS)
def test_a_hostile_text_of_a_target_is_shown_and_not_obeyed(what: str) -> None:
    fields = {key: value if key in ("outcome", "list") else poisoned(value) for key, value in EVENTS[what].items()}
    said = shown({**event(what), **fields})
    control = {character for character in said if not character.isprintable()} - {"\n"}
    assert control == set()
    assert "\ufffd" not in said
    assert all(row.strip() for row in said.split("\n")[:-1])
    said.encode("utf-8")


@pytest.mark.parametrize("field", ["what", "target", "run"])
def test_the_frame_of_an_event_is_not_trusted_either(field: str) -> None:
    for what in ("begin", "end", "unknown"):
        said = shown({**event(what), field: HOSTILE})
        assert {character for character in said if not character.isprintable()} - {"\n"} == set()


def test_an_outcome_that_nobody_knows_is_shown_safely() -> None:
    assert "\x1b" not in shown(event("end", outcome=HOSTILE))


@pytest.mark.parametrize("words", ["[bold]x[/bold]", "[/]", "[red", ":smile:", "\\[x]", "a[0]", "[link=http://x]y[/link]"])
def test_markup_is_shown_as_it_was_written(words: str) -> None:
    assert words in shown(event("failed", why=words))


def test_a_line_break_stays_within_its_line() -> None:
    assert "out\\nof\\r\\nluck" in shown(event("failed", why="out\nof\r\nluck"))


def test_a_lone_surrogate_is_shown_by_its_number() -> None:
    assert "caf\\udce9.py" in shown(event("staged", changed=["caf\udce9.py"]))


def test_text_of_every_language_is_shown_as_it_is() -> None:
    assert "größe-日本-🚀" in shown(event("failed", why="größe-日本-🚀"))


def test_a_text_without_end_is_cut() -> None:
    said = text.safe("x" * 10_000)
    assert (len(said), said[-1]) == (text.LONGEST, "…")


def test_a_long_line_is_not_broken_by_the_screen() -> None:
    assert len(shown(event("launched", argv=["x" * 300])).splitlines()) == 2


def test_an_error_is_where_what_and_what_to_do() -> None:
    error = DeployError("it\x1b[31m broke", where="ct200", todo="mend\nit")
    assert faults.lines(error) == ["error: ct200: it\\x1b[31m broke", "   do: mend\\nit"]
    assert faults.lines(DeployError("it broke")) == ["error: it broke"]


# --- the other readers


def quiet(*events: dict[str, Any]) -> str:
    out = io.StringIO()
    reader = Quiet(Screen(out))
    for item in events:
        reader(item)
    return out.getvalue()


def test_quiet_says_nothing_of_a_good_run() -> None:
    assert quiet(*(event(what) for what in EVENTS if what != "end"), event("end", status=0, outcome="running")) == ""


@pytest.mark.parametrize("status", [1, 3, 4, 5, 6, 7, 130])
def test_quiet_tells_the_whole_of_a_run_that_went_wrong(status: int) -> None:
    events = [event("begin"), event("failed"), event("end", status=status)]
    assert quiet(*events) == shown(*events)


def test_quiet_keeps_the_runs_of_several_targets_apart() -> None:
    other = {"run": "20260101-000001-bbbb", "target": "ct201"}
    said = quiet(event("begin"), event("end", status=0, outcome="running"), event("begin", **other), event("end", **other))
    assert "ct201" in said
    assert "ct200" not in said


def test_json_is_one_line_of_ascii_for_each_event(capsys: pytest.CaptureFixture[str]) -> None:
    events = [event("failed", why=HOSTILE), event("end")]
    for item in events:
        as_json(item)
    out = capsys.readouterr().out
    assert [json.loads(row) for row in out.splitlines()] == events
    assert out.isascii()


# --- colour

PRINT = "import json, sys; from deployctl.report.screen import Screen; screen = Screen()\nfor e in json.loads(sys.argv[1]): screen(e)"
COLOUR = re.compile(rb"\x1b\[[0-9;]*3[0-7]m")


def environment(**more: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "LANG": "C.UTF-8", **more}


def on_terminal(**more: str) -> bytes:
    """What a person's terminal gets."""
    ours, theirs = pty.openpty()
    argv = [sys.executable, "-c", PRINT, json.dumps([event("failed"), event("checked"), event("end")])]
    with subprocess.Popen(argv, stdout=theirs, stderr=theirs, env=environment(**more)) as process:
        os.close(theirs)
        parts = []
        while True:
            try:
                parts.append(os.read(ours, 65536))
            except OSError:  # the end of a terminal
                break
        assert process.wait(30) == 0
    os.close(ours)
    return b"".join(parts)


def test_a_terminal_has_colour() -> None:
    assert COLOUR.search(on_terminal())


def test_no_color_has_none() -> None:
    said = on_terminal(NO_COLOR="1")
    assert b"pid 44 ended" in said
    assert not COLOUR.search(said)


def test_a_dumb_terminal_gets_plain_text() -> None:
    assert b"\x1b" not in on_terminal(TERM="dumb")


def test_a_pipe_gets_plain_text() -> None:
    argv = [sys.executable, "-c", PRINT, json.dumps([event("failed"), event("end")])]
    done = subprocess.run(argv, capture_output=True, env=environment(), check=True)
    assert b"pid 44 ended" in done.stdout
    assert b"\x1b" not in done.stdout


# --- flags of the last launch


def test_what_is_dropped_of_the_last_launch_comes_before_what_is_kept() -> None:
    said = shown(event("flags"))
    assert "dropped --x '--y=a b', which the last launch had" in said
    assert said.index("dropped") < said.index("kept --lr 1e-4, from the last launch")


def test_a_last_launch_without_flags_has_none_to_keep() -> None:
    assert "the last launch had none to keep" in shown(event("flags", kept={}, dropped={}))
