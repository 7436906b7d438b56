"""check: what was launched lives, and says so in its log; what was there before this launch proves nothing."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deployctl.steps.check import Check
from deployctl.steps.launch import Launch
from deployctl.steps.stop import Stop, rung
from tests.steps import Talk, refusal, said, setting, steps_of, until

# --- the model


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("", Check(alive="5s", log=None, within="60s")),
        (": {alive: 10s, log: 'step \\d+', within: 2m}", Check(alive="10s", log="step \\d+", within="2m")),
        (": {alive: 500ms}", Check(alive="500ms")),
        (": {absent: Traceback, port: 80}", Check(absent=["Traceback"], port=[80])),
        (": {absent: [a, b], port: [80, 81], gpu: true}", Check(absent=["a", "b"], port=[80, 81], gpu=True)),
        (": {http: 'http://localhost:1/x'}", Check(http={"url": "http://localhost:1/x"})),
        (": {command: [test, -e, 5]}", Check(command=["test", "-e", "5"])),
    ],
)
def test_a_check_is_its_keys(tmp_path: Path, fields: str, expected: Check) -> None:
    assert steps_of(tmp_path, f"  - launch\n  - check{fields}\n")[1] == expected


@pytest.mark.parametrize(
    ("fields", "line", "what", "todo"),
    [
        ("\n      alive: 10\n", 9, "check: alive: '10' is no duration", "write '10s' for seconds"),
        ("\n      log: 'step [0-9'\n", 9, "check: log: 'step [0-9' is no regular expression: unterminated character set", "Python's re"),
        ("\n      log: 5\n", 9, "check: log: wants a text, not '5'", "in quotes"),
        ("\n      alive: 1s\n      whitin: 5s\n", 10, "check: 'whitin' is no key of check", "did you mean 'within'?"),
        ("\n      absent: [ok, '(']\n", 9, "check: absent[1]: '(' is no regular expression", "Python's re"),
        ("\n      port: 0\n", 9, "check: port[0]: '0' is below 1", "correct the number"),
        ("\n      port: '80'\n", 9, "check: port[0]: wants a whole number, not '80'", "a whole number"),
        ("\n      http: http://example.org/\n", 9, "check: http: url: 'http://example.org/' is no address in the target", "127.0.0.1"),
        ("\n      http: https://127.0.0.1/\n", 9, "check: http: url: 'https://127.0.0.1/' is no address in the target", "127.0.0.1"),
        ("\n      command: []\n", 9, "check: command: there is too little here", "at least 1"),
        ("\n      metric: {log: 'x [0-9]+'}\n", 9, "check: metric: log: 'x [0-9]+' does not have one group", "around the number"),
        (
            "\n      metric:\n        log: '(.*)'\n        at_least: 90%\n",
            11,
            "check: metric: at_least: '90%' is no bound",
            "90% of before",
        ),
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


def test_what_is_asked_for_is_carried_to_the_job() -> None:
    metric = {"log": "x (.*)", "at_least": "90% of before", "at_most": "1e3", "over": 3}
    step = Check.model_validate({"port": 80, "http": "http://[::1]:80/", "gpu": True, "command": ["true"], "absent": "a", "metric": metric})
    [do] = step.compile(setting(), None).do
    assert (do["port"], do["gpu"], do["command"], do["absent"]) == ([80], True, ["true"], ["a"])
    assert do["http"] == {"url": "http://[::1]:80/", "status": [], "contains": None}
    assert do["metric"] == {
        "name": "metric",
        "log": "x (.*)",
        "over": 3,
        "at_least": {"value": 0.9, "of_before": True},
        "at_most": {"value": 1000.0, "of_before": False},
    }


# --- in a target


class Place:
    """A place where one program is launched and checked."""

    def __init__(self, home: Path) -> None:
        self.home, self.pids, self.runs = home, list[int](), 0
        self.log = home / "a.log"

    def check(self, body: str, **fields: Any) -> list[dict[str, Any]]:
        """The events of a job that launches a program of that text and checks it."""
        (self.home / "a.py").write_text(f"import os, sys, time\n{body}\n")
        plan = {"directory": str(self.home), "command": ("python3", "a.py"), "match": "no-such.py", "log": "a.log"}
        self.runs += 1
        talk = Talk(self.home, f"20260101-00000{self.runs - 1}-aaaa", **plan)
        step = Check.model_validate(fields)
        steps = [Launch(), step] if self.runs == 1 else [Stop.model_validate({"ladder": [rung("KILL 20s")]}), Launch(), step]
        events = talk.job(*[operation for one in steps for operation in one.compile(setting(**plan), None).do])
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


def test_a_line_that_ends_with_a_carriage_return_is_a_line(place: Place) -> None:
    events = place.check(f"os.write(1, b'step 1\\rstep 2\\r')\n{SLEEP}", alive="0s", log="^step 2$", within="20s")
    assert said(events, "checked")[0]["line"] == "step 2"


# --- what must not be there


def test_what_must_be_absent_fails_the_check_at_once(place: Place) -> None:
    events = place.check(
        f"print('RuntimeError: CUDA out of memory. Tried')\n{SLEEP}", alive="5m", absent=["Traceback", "CUDA out of memory"]
    )
    [failed] = said(events, "failed")
    assert failed["why"] == "the log says 'RuntimeError: CUDA out of memory. Tried'"
    assert failed["tail"] == ["RuntimeError: CUDA out of memory. Tried"]


def test_what_an_earlier_launch_wrote_is_no_fault_of_this_one(place: Place) -> None:
    place.log.write_text("Traceback\n")
    assert place.check(SLEEP, alive="100ms", absent="Traceback")[-1]["status"] == 0


def test_an_end_is_shown_with_the_line_that_must_be_absent(place: Place) -> None:
    events = place.check("raise SystemError('Ä')", alive="20s", absent="^SystemError")
    [failed] = said(events, "failed")
    assert failed["why"].endswith("; the log says 'SystemError: Ä'")
    assert failed["exit"]["status"] == 1


# --- a port, a page


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_a_port_of_a_child_of_the_program_is_the_workload_s(place: Place) -> None:
    port = free_port()
    body = f"import socket\ntime.sleep(0.3)\nserver = None if os.fork() else socket.create_server(('127.0.0.1', {port}))\n{SLEEP}"
    events = place.check(body, alive="0s", port=port, within="20s")
    assert said(events, "checked")[0]["passed"] == [f"port {port}"]
    for pid in Path("/proc").glob("[0-9]*/environ"):  # the child outlives the launched one
        try:
            if f"DEPLOYCTL_MARK={place.home}/".encode() in pid.read_bytes():
                place.pids.append(int(pid.parent.name))
        except OSError:
            continue


def test_a_stranger_s_port_is_not_the_workload_s_and_the_wait_says_so(place: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        events = place.check(SLEEP, alive="0s", port=port, within="6s")
    why = f"nothing of the workload listens on port {port}, pid {os.getpid()} ("
    assert said(events, "failed")[0]["why"].startswith(why)
    [waits] = said(events, "checking")[0]["waits"]
    assert waits["check"] == f"port {port}"
    assert waits["seen"].startswith(why)


SERVER = """
from http.server import BaseHTTPRequestHandler, HTTPServer
class Page(BaseHTTPRequestHandler):
    asked = 0
    def do_GET(self):
        Page.asked += 1
        self.send_response(503 if Page.asked == 1 else 200)
        self.end_headers()
        self.wfile.write(b"loading" if Page.asked < 3 else b"now ready")
HTTPServer(("127.0.0.1", %d), Page).serve_forever()
"""


def test_a_page_is_asked_until_it_says_what_is_wanted(place: Place) -> None:
    port = free_port()
    events = place.check(SERVER % port, alive="0s", http={"url": f"http://127.0.0.1:{port}/a", "contains": "ready$"}, within="30s")
    assert said(events, "checked") != []
    assert place.log.read_text().count("GET /a ") == 3


# --- a command, a GPU


def test_a_command_is_run_again_until_it_ends_with_0(place: Place) -> None:
    body = f"time.sleep(1)\nopen('there', 'w').close()\n{SLEEP}"
    events = place.check(body, alive="0s", command=["sh", "-c", "env >env; pwd >pwd; test -e there"], within="20s")
    assert said(events, "checked")[0]["passed"] == ["command"]
    assert (place.home / "pwd").read_text().strip() == str(place.home)
    assert "LANG=C.UTF-8" in (place.home / "env").read_text()
    assert "DEPLOYCTL_" not in (place.home / "env").read_text(), "it would be taken for a process of the workload"


@pytest.fixture
def device() -> Iterator[str]:
    """A device file named as a GPU's is, that stands for /dev/zero."""
    path = f"/dev/nvidia-{secrets.token_hex(6)}"
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5))
        os.close(os.open(path, os.O_RDONLY))
    except OSError as error:
        pytest.skip(f"no device file can be made here: {error}")
    yield path
    os.unlink(path)


@pytest.mark.parametrize("closed", ["", "os.close(gpu)\n"])
def test_a_gpu_that_is_open_or_mapped_is_held(place: Place, device: str, closed: str) -> None:
    body = f"import mmap\ngpu = os.open({device!r}, os.O_RDWR)\nkept = mmap.mmap(gpu, 4096, flags=mmap.MAP_PRIVATE)\n{closed}{SLEEP}"
    assert said(place.check(body, alive="0s", gpu=True, within="20s"), "checked")[0]["passed"] == ["gpu"]


def test_without_a_gpu_the_check_fails(place: Place, device: str) -> None:
    with open(device, "rb"):  # a stranger's
        events = place.check(SLEEP, alive="0s", gpu=True, within="500ms")
    assert said(events, "failed")[0]["why"] == "no process of the workload holds a GPU (/dev/nvidia*) within 0.5 s"


# --- a number


def rates(*numbers: float, end: str = SLEEP) -> str:
    return "\n".join([*(f"print('tokens/s {number}')" for number in numbers), end])


METRIC = {"name": "tokens/s", "log": r"tokens/s ([\d.]+)", "over": 3}


def restart(place: Place, *numbers: float, end: str = SLEEP, **bounds: str) -> list[dict[str, Any]]:
    """The events of a restart of what told 900, 1000, 1100 by what tells the numbers."""
    assert said(place.check(rates(1, 900, 1000, 1100), alive="0s", metric=METRIC, within="20s"), "checked")[0]["metric"]["after"] == 1000
    return place.check(rates(*numbers, end=end), alive="0s", metric={**METRIC, **bounds}, within="20s")


def test_a_throughput_as_before_passes_and_the_end_shows_both(place: Place) -> None:
    events = restart(place, 10, 950, 900, 910, at_least="90% of before")
    both = {"name": "tokens/s", "before": 1000.0, "after": 910.0}
    assert said(events, "checked")[0]["metric"] == both
    assert events[-1]["metrics"] == [both]


def test_what_a_throughput_came_to_is_told_of_a_run_that_failed_too(place: Place) -> None:
    events = restart(place, 950, 500, 510, end="sys.exit(3)", at_least="90% of before")
    assert events[-1]["metrics"] == [{"name": "tokens/s", "before": 1000.0, "after": 510.0}]


def test_without_a_value_before_only_the_absolute_bound_counts(place: Place) -> None:
    metric = {**METRIC, "over": 1, "at_least": "90% of before", "at_most": "20"}
    events = place.check(rates(10), alive="0s", metric=metric, within="20s")
    assert said(events, "checked")[0]["metric"] == {"name": "tokens/s", "before": None, "after": 10.0}


# --- cancelled


def test_a_run_is_taken_back_while_it_checks(place: Place) -> None:
    cancel = f"{place.home}/state/workloads/train/runs/20260101-000000-aaaa.cancel"
    text = json.dumps({"user": "bob", "host": "lab"})
    events = place.check(f"with open({cancel!r}, 'w') as out:\n    out.write({text!r})\n{SLEEP}", alive="5m")
    assert [event["op"] for event in said(events, "cancelled")] == ["check"]
