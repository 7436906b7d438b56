"""The files in a target: private, whole, and no older than they must be."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from typing import Any

import pytest

from deployctl.agent import reserve, runs, shared, state
from tests.agent_ops import read, start, write

RUN = "20260101-000000-aaaa"


@pytest.fixture
def home(tmp_path: Any) -> state.Home:
    """The home of a workload in a state directory that does not exist yet."""
    made = state.Home(str(tmp_path / "base" / "state"), "train")
    made.make()
    return made


def mode(path: str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


# --- directories


def test_every_directory_of_the_state_is_private(home: state.Home) -> None:
    paths = [home.base, os.path.dirname(home.path), home.path, home.runs]
    assert {path: oct(mode(path)) for path in paths} == dict.fromkeys(paths, "0o700")


def test_a_directory_that_is_there_keeps_its_mode(tmp_path: Any) -> None:
    os.makedirs(str(tmp_path / "state"))
    os.chmod(str(tmp_path / "state"), 0o755)
    shared.make_directory(str(tmp_path / "state"))
    assert mode(str(tmp_path / "state")) == 0o755


def test_the_state_directory_is_the_named_one() -> None:
    assert state.directory("/some/where") == "/some/where"


@pytest.mark.skipif(os.geteuid() != 0, reason="the directory of root")
def test_the_state_directory_of_root_is_that_of_the_system() -> None:
    assert state.directory() == "/var/lib/deployctl"


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone becomes another")
@pytest.mark.parametrize(("surroundings", "expected"), [({"XDG_STATE_HOME": "/x"}, "/x/deployctl"), ({}, "/h/.local/state/deployctl")])
def test_the_state_directory_of_a_user_is_his_own(surroundings: dict[str, str], expected: str) -> None:
    code = "import os\nfrom deployctl.agent import shared, state\nos.setuid(1000)\nprint(state.directory())"
    environment = {"HOME": "/h", "XDG_STATE_HOME": "", **surroundings}
    with start(code, environment=environment) as process:
        out, _ = process.communicate()
    assert out.decode().strip() == expected


def test_workloads_are_listed_by_name(home: state.Home) -> None:
    state.Home(home.base, "a").make()
    assert state.names(home.base) == ["a", "train"]
    assert state.names("/nowhere") == []


# --- JSON files


def test_what_was_written_is_read_and_private(home: state.Home) -> None:
    data = {"a": [1, None, "ä\udcff\n"], "b": {}}
    state.write_json(home.record, data)
    assert state.read_json(home.record) == data
    assert mode(home.record) == 0o600


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"5", b"\xff", b'{"a": 1'])
def test_a_damaged_file_is_none(home: state.Home, content: bytes) -> None:
    write(home.record, content)
    assert state.read_json(home.record) is None


def test_what_cannot_be_written_leaves_the_old_file_and_no_other(home: state.Home) -> None:
    state.write_json(home.record, {"a": 1})
    with pytest.raises(TypeError):
        state.write_json(home.record, {"a": 2, "b": object()})
    assert state.read_json(home.record) == {"a": 1}
    assert sorted(os.listdir(home.path)) == ["record.json", "runs"]


WRITER = """
import sys
from deployctl.agent import shared, state
number = 0
while True:
    number += 1
    state.write_json(sys.argv[1], {"number": number, "filler": "x" * 20000, "again": number})
"""


def test_a_reader_never_sees_half_a_file(home: state.Home) -> None:
    state.write_json(home.record, {"number": 0, "again": 0})
    with start(WRITER, home.record) as writer:
        try:
            seen = set()
            while len(seen) < 50:
                data = json.loads(read(home.record))
                assert data["number"] == data["again"]
                seen.add(data["number"])
                assert writer.poll() is None
        finally:
            writer.send_signal(signal.SIGKILL)


# --- event files


@pytest.fixture
def events(home: state.Home) -> state.EventFile:
    """The event file of a run."""
    return state.EventFile(home.events(RUN), RUN, "ct200")


def test_an_event_is_one_line_with_run_target_and_time(events: state.EventFile) -> None:
    said = events.say("cutover", "stopped", sync=True, by="INT\n", argv=["\udcff"])
    assert read(events.path).count(b"\n") == 1
    assert json.loads(read(events.path)) == said
    assert (said["v"], said["run"], said["target"], said["phase"], said["what"]) == (1, RUN, "ct200", "cutover", "stopped")
    assert (mode(events.path), events.size()) == (0o600, len(read(events.path)))


def test_two_writers_share_a_file_line_by_line(events: state.EventFile) -> None:
    code = (
        "import sys\nfrom deployctl.agent import shared, state\nfile = state.EventFile(sys.argv[1], 'r', 't')\n"
        "for number in range(300): file.say('prepare', 'x', writer=sys.argv[2], number=number, filler='y' * 3000)\n"
    )
    writers = [start(code, events.path, name) for name in ("a", "b")]
    assert [writer.wait(20) for writer in writers] == [0, 0]
    for writer in writers:
        writer.communicate()
    found = [json.loads(line) for line in read(events.path).splitlines()]
    assert [event["number"] for event in found if event["writer"] == "a"] == list(range(300))
    assert len(found) == 600


@pytest.mark.parametrize("tail", [b"", b'{"what": "end", "sta', b"\xff\xff", b'{"what": "end"}'])
def test_a_torn_last_line_is_passed_over(events: state.EventFile, tail: bytes) -> None:
    events.say("prepare", "begin")
    events.say("prepare", "connected")
    with open(events.path, "ab") as out:
        out.write(tail)
    last = state.last_event(events.path)
    assert last is not None
    assert last["what"] == "connected"


def test_what_comes_after_a_torn_line_is_not_lost(events: state.EventFile) -> None:
    """Also where it was torn by another process that has the file open."""
    events.say("cutover", "op")
    with open(events.path, "ab") as out:
        out.write(b'{"what": "en')
    events.say("cutover", "stopped")
    events.say("cutover", "end")
    whole = [event for event in map(state.event_of, read(events.path).splitlines()) if event]
    assert [event["what"] for event in whole] == ["op", "stopped", "end"]


def test_the_last_event_of_a_long_file_is_found(events: state.EventFile) -> None:
    for number in range(2000):
        events.say("cutover", "waiting", number=number, filler="x" * 200)
    last = state.last_event(events.path)
    assert last is not None
    assert last["number"] == 1999


def test_an_event_longer_than_the_look_does_not_hide_the_others(events: state.EventFile) -> None:
    events.say("cutover", "failed", tail=["x" * 4096] * 20)
    last = state.last_event(events.path)
    assert last is not None
    assert last["what"] == "failed"


@pytest.mark.parametrize("content", [b"", b"\n", b"torn", b"5\n", b"null\n"])
def test_a_file_without_an_event_has_no_last_one(events: state.EventFile, content: bytes) -> None:
    write(events.path, content)
    assert state.last_event(events.path) is None


def test_a_file_that_is_not_there_has_no_last_event(home: state.Home) -> None:
    assert state.last_event(home.events("no-such-run")) is None


# --- room for last words


def blocks(path: str) -> int:
    return os.stat(path).st_blocks * 512


def test_the_reserve_lies_behind_the_end_of_the_file_and_is_given_back(home: state.Home, events: state.EventFile) -> None:
    events.say("prepare", "begin")
    events.make_reserve()
    for _ in range(100):
        events.say("cutover", "waiting", filler="x" * 2000)
    assert blocks(events.path) - events.size() >= state.RESERVED
    assert len(read(events.path).splitlines()) == 101
    runs.close(home, RUN)
    assert blocks(events.path) - events.size() < state.RESERVED
    assert len(read(events.path).splitlines()) == 101


def test_without_room_behind_the_end_the_reserve_is_a_file(home: state.Home, events: state.EventFile) -> None:
    """A Python without ctypes cannot ask for any."""
    code = (
        "import os, sys\nsys.modules['ctypes'] = None\nfrom deployctl.agent import shared, state\n"
        "file = state.EventFile(sys.argv[1], 'r', 't')\nfile.make_reserve()\nreserve = sys.argv[1] + state.RESERVE\n"
        "file.say('cutover', 'waiting')\nprint(os.stat(reserve).st_blocks * 512 >= state.RESERVED)\n"
        "file.say('cutover', 'end', last=True)\nprint(os.path.exists(reserve))\n"
    )
    with start(code, events.path) as process:
        out, _ = process.communicate()
    assert out.split() == [b"True", b"False"]
    assert len(read(events.path).splitlines()) == 2


def test_a_record_is_written_into_what_lies_ready_for_it(home: state.Home) -> None:
    state.write_json(home.record, {"number": 1})
    for spare in state.spares(home.record):
        reserve.make(spare, state.RESERVED)
    first, second = state.spares(home.record)
    inode = os.stat(first).st_ino
    state.write_json(home.record, {"number": 2}, spare=first)
    assert (state.read_json(home.record), os.stat(home.record).st_ino) == ({"number": 2}, inode)
    assert (os.path.exists(first), os.path.exists(second)) == (False, True)
    runs.close(home, RUN)
    assert sorted(os.listdir(home.path)) == ["record.json", "runs"]


# --- pruning


def fill(home: state.Home, count: int, days_ago: float = 0) -> list[str]:
    """That many event files of runs that began some days ago."""
    second = time.strftime("%Y%m%d-%H%M%S", time.gmtime(time.time() - days_ago * 86400))
    known = [f"{second}-{number:04d}" for number in range(count)]
    for run in known:
        write(home.events(run), b"{}\n")
    return known


def test_the_newest_runs_are_kept(home: state.Home) -> None:
    known = fill(home, state.KEPT_RUNS + 7)
    home.prune()
    assert state.runs(home) == known[8:], "the run that begins makes them complete"


def test_a_few_runs_are_all_kept(home: state.Home) -> None:
    known = fill(home, 3)
    home.prune()
    assert state.runs(home) == known


def test_nothing_is_left_of_a_run_that_is_not_kept(home: state.Home) -> None:
    known = fill(home, state.KEPT_RUNS)
    for ending in (".cancel", ".start", ".zip", ".tell", ".jsonl.reserve"):
        for run in (known[0], known[1], "20200101-000000-aaaa"):
            write(home.cancel(run)[: -len(".cancel")] + ending, b"")
    home.prune()
    left = {name.split(".")[0] for name in os.listdir(home.runs) if not name.endswith(".jsonl")}
    assert left == {known[1]}


def test_a_run_without_an_end_is_kept_however_many_there_are(home: state.Home) -> None:
    known = fill(home, state.KEPT_RUNS + 7)
    state.write_json(home.job(known[0]), {})
    home.prune()
    assert known[0] in state.runs(home)


def test_only_event_files_are_runs(home: state.Home) -> None:
    for name in ("a.jsonl", "b.job", "c.cancel", ".new-x"):
        write(os.path.join(home.runs, name), b"")
    assert state.runs(home) == ["a"]


def test_a_disk_that_is_full_tears_no_line(tmp_path: Any) -> None:
    """RLIMIT_FSIZE cuts a write short as a full disk does."""
    path = str(tmp_path / "events.jsonl")
    code = f"""
import resource, signal, sys
sys.path[:0] = {sys.path!r}
from deployctl.agent import shared, state
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
events = state.EventFile({path!r}, "run", "ct200")
for number in range(9):
    try:
        events.say("cutover", "op", index=number)
    except OSError:
        print("full at", number)
        break
"""
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, timeout=30, check=True)
    assert done.stdout.startswith("full at")
    with open(path, "rb") as lines:
        assert all(state.event_of(line) for line in lines)
