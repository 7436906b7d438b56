"""launch: the program itself, without a shell, in a session of its own, as the playbook says and as nobody else does."""

from __future__ import annotations

import json
import os
import pwd
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from deployctl.errors import RefusedError
from deployctl.steps.launch import Launch
from tests.steps import RUN, WHO, Talk, opened, refusal, said, setting, steps_of, until

# Writes down, as JSON, how it finds itself; then waits.
TELL = """import json, os, signal, sys, time
blocked = [int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, [])]
ignored = [int(n) for n in signal.valid_signals() if signal.getsignal(n) is signal.SIG_IGN]
umask = os.umask(0)
facts = {"argv": sys.argv, "cwd": os.getcwd(), "env": dict(os.environ), "uid": os.getuid(), "groups": os.getgroups(),
         "umask": umask, "session": os.getsid(0) == os.getpid(), "stdin": os.readlink("/proc/self/fd/0"),
         "fds": sorted(os.listdir("/proc/self/fd"), key=int), "ignored": ignored, "blocked": blocked}
print("hello out", flush=True)
print("hello err", file=sys.stderr)
with open("facts.new", "w") as out:
    json.dump(facts, out)
os.rename("facts.new", "facts")
time.sleep(600)
"""


class Place:
    """A directory that every user may enter, and what was launched there."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.pids: list[int] = []
        self.launches = 0
        (home / "tell.py").write_text(TELL)

    def launch(self, *words: str, **changes: Any) -> list[dict[str, Any]]:
        """The events of a job that only launches `tell.py` with the words."""
        plan = {
            "directory": str(self.home),
            "command": ("python3", "tell.py", *words),
            "match": "no-such.py",
            "log": "logs/a.log",
            **changes,
        }
        self.launches += 1
        talk = Talk(self.home, f"20260101-00000{self.launches - 1}-aaaa", **plan)
        events = talk.job(*Launch().compile(setting(**plan), None).do)
        talk.close()
        self.pids += [event["pid"] for event in said(events, "launched")]
        return events

    def facts(self, *words: str, **changes: Any) -> Any:
        """How the launched program found itself."""
        assert self.launch(*words, **changes)[-1]["outcome"] == "running"
        until("the program tells", (self.home / "facts").exists)
        return json.loads((self.home / "facts").read_text())

    def end(self) -> None:
        for pid in self.pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        until("all has ended", lambda: not any(os.path.exists(f"/proc/{pid}") for pid in self.pids))


@pytest.fixture
def place() -> Iterator[Place]:
    """A place in which programs may be launched; they are ended afterwards."""
    home = Path(tempfile.mkdtemp(prefix="deployctl-launch-"))
    home.chmod(0o777)
    made = Place(home)
    yield made
    made.end()
    shutil.rmtree(home, ignore_errors=True)  # a minder may still write how its program ended


# --- the model, admit and compile


def test_a_launch_is_a_bare_word(tmp_path: Path) -> None:
    assert steps_of(tmp_path, "  - launch\n") == steps_of(tmp_path, "  - launch: {}\n") == (Launch(),)


def test_a_launch_has_no_keys(tmp_path: Path) -> None:
    assert refusal(tmp_path, "  - stop\n  - launch:\n      user: bob\n")[:2] == (9, "launch: 'user' is no key of launch")


@pytest.mark.parametrize("fact", ["process", "program", "interpreter"])
def test_what_cannot_be_launched_is_refused_before_anything_is_prepared(fact: str) -> None:
    with pytest.raises(RefusedError, match=f"there: a fault of {fact}"):
        Launch().admit(setting(), opened(faults=(fact,)), lambda *_, **__: None)


def test_the_program_is_said(tmp_path: Path) -> None:
    events: list[tuple[str, dict[str, Any]]] = []
    found = {"path": "/opt/v/bin/python3", "interpreter": "/opt/v/bin/python3", "prefix": "/opt/v"}
    Launch().admit(setting(), opened(program=found), lambda what, **fields: events.append((what, fields)))
    assert events == [("program", {"path": "/opt/v/bin/python3", "prefix": "/opt/v"})]


def test_a_launch_carries_the_workload_as_data() -> None:
    plan = setting(command=("python3", "a.py", "--x=1"), directory="/srv/a", log="a.log", environment={"A": "1"}, user="bob")
    [do] = Launch().compile(plan, None).do
    assert do == {
        "op": "launch", "as": "new", "argv": ["python3", "a.py", "--x=1"], "directory": "/srv/a", "environment": {"A": "1"},
        "log": "a.log", "user": "bob",
    }  # fmt: skip


def test_what_undoes_a_launch_is_the_stop_of_what_was_launched() -> None:
    [undo] = Launch().compile(setting(), None).undo
    assert (undo["op"], undo["who"]) == ("stop", "launched")
    assert [rung["signal"] for rung in undo["ladder"]] == ["INT", "TERM", "KILL"]


# --- in a target


def test_no_shell_reads_the_words(place: Place) -> None:
    words = ["$HOME", "a b", "`id`", "; exit", "*", "", "--x=\"'", "ä\n"]
    assert place.facts(*words)["argv"] == ["tell.py", *words]


def test_the_program_has_a_session_and_no_input_of_ours(place: Place) -> None:
    facts = place.facts()
    assert (facts["session"], facts["stdin"], facts["umask"], facts["cwd"]) == (True, "/dev/null", 0o022, str(place.home))


def test_the_program_inherits_no_descriptor(place: Place) -> None:
    assert [number for number in place.facts()["fds"] if number != "3"] == ["0", "1", "2"]


def test_the_program_ignores_and_blocks_no_signal(place: Place) -> None:
    facts = place.facts()
    assert [number for number in facts["ignored"] if number not in (signal.SIGPIPE, signal.SIGXFSZ)] == []  # python itself ignores these
    assert facts["blocked"] == []


def test_the_environment_is_clean_but_for_what_is_said(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKED", "yes")
    env = place.facts(environment={"A": "x=y", "LANG": "de_DE.UTF-8"})["env"]
    names = {name for name in env if not name.startswith("DEPLOYCTL_") and name != "LC_CTYPE"}
    assert names == {"A", "HOME", "LANG", "LOGNAME", "PATH", "PYTHONUNBUFFERED", "SHELL", "USER"}
    assert (env["A"], env["LANG"], env["DEPLOYCTL_RUN"]) == ("x=y", "de_DE.UTF-8", RUN)
    assert env["DEPLOYCTL_MARK"] == f"{place.home}/state/workloads/train"


def test_the_log_is_appended_after_a_marked_line(place: Place) -> None:
    (place.home / "logs").mkdir()
    (place.home / "logs" / "a.log").write_text("old\n")
    place.facts()
    lines = until("both lines are there", lambda: [*read(place)] if len(read(place)) == 4 else None)
    assert lines[0] == "old"
    assert lines[1].startswith(f"--- deployctl: train started by run {RUN}, ")
    assert sorted(lines[2:]) == ["hello err", "hello out"]


def read(place: Place) -> list[str]:
    return (place.home / "logs" / "a.log").read_text().splitlines()


def test_the_offset_is_where_this_launch_begins_to_write(place: Place) -> None:
    [event] = said(place.launch(), "launched")
    log = place.home / "logs" / "a.log"
    until("the program wrote", lambda: log.stat().st_size > event["log_offset"])
    assert log.read_bytes()[event["log_offset"] :].startswith(b"hello ")


def test_a_user_is_that_user_and_nothing_of_us(place: Place) -> None:
    facts = place.facts(user="nobody")
    nobody = pwd.getpwnam("nobody")
    assert (facts["uid"], facts["groups"], facts["env"]["USER"]) == (nobody.pw_uid, [nobody.pw_gid], "nobody")
    assert (place.home / "logs" / "a.log").stat().st_uid == nobody.pw_uid


def test_the_record_names_the_process(place: Place) -> None:
    [event] = said(place.launch("--x=1"), "launched")
    record = json.loads((place.home / "state" / "workloads" / "train" / "record.json").read_text())
    assert (record["pid"], record["run"], record["who"]) == (event["pid"], RUN, WHO)
    assert record["argv"] == ["python3", "tell.py", "--x=1"]
    assert "HOME" in record["environment"]
    assert "/root" not in json.dumps(record["environment"])


@pytest.mark.parametrize(("end", "expected"), [("sys.exit(3)", {"status": 3}), ("os.kill(os.getpid(), 11)", {"signal": 11})])
def test_the_minder_keeps_how_it_ended(place: Place, end: str, expected: dict[str, int]) -> None:
    (place.home / "tell.py").write_text(f"import os, sys\n{end}\n")
    [event] = said(place.launch(), "launched")
    file = place.home / "state" / "workloads" / "train" / "exit.json"
    until("the end is written down", file.exists)
    found = json.loads(file.read_text())
    assert {key: found[key] for key in ("status", "signal") if key in found} == expected
    assert (found["pid"], found["run"]) == (event["pid"], RUN)


def test_what_runs_already_is_not_launched_twice(place: Place) -> None:
    [first] = said(place.launch(), "launched")
    events = place.launch()
    assert said(events, "launched") == []
    assert said(events, "failed")[0]["why"] == f"it already runs as pid {first['pid']}"


def test_without_a_match_what_runs_already_is_not_launched_twice(place: Place) -> None:
    script = f"tell_{secrets.token_hex(4)}.py"
    (place.home / script).write_text(TELL)
    command = (sys.executable, script)
    [first] = said(place.launch(match=None, command=command), "launched")
    (place.home / "state" / "workloads" / "train" / "record.json").unlink()
    assert [event["why"] for event in said(place.launch(match=None, command=command), "failed")] == [
        f"it already runs as pid {first['pid']}"
    ]


def no_directory(place: Place) -> dict[str, Any]:
    return {"directory": str(place.home / "nowhere")}


def no_log(place: Place) -> dict[str, Any]:
    return {"log": "tell.py/a.log"}


def no_program(place: Place) -> dict[str, Any]:
    return {"command": ("no-such-program",)}


def no_user(place: Place) -> dict[str, Any]:
    return {"user": "no-such-user"}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (no_directory, "there is no such directory"),
        (no_log, "cannot write the log: "),
        (no_program, "there is no program 'no-such-program'"),
        (no_user, "there is no user 'no-such-user'"),
    ],
)
def test_what_cannot_be_started_is_explained(place: Place, change: Callable[[Place], dict[str, Any]], why: str) -> None:
    events = place.launch(**change(place))
    assert said(events, "launched") == []
    assert said(events, "failed")[0]["why"].startswith(why)
    assert events[-1]["status"] != 0


def test_a_program_that_the_kernel_refuses_is_explained(place: Place) -> None:
    (place.home / "a.bin").write_bytes(b"\x7fELF rubbish")
    (place.home / "a.bin").chmod(0o755)
    events = place.launch(command=("./a.bin",))
    assert "format error" in said(events, "failed")[0]["why"].lower()


def test_a_script_without_a_first_line_is_refused_in_prepare(place: Place) -> None:
    (place.home / "run.sh").write_text("exec python3 tell.py\n")
    (place.home / "run.sh").chmod(0o755)
    talk = Talk(place.home, directory=str(place.home), command=("./run.sh",), match="no-such.py")
    assert "program" in talk.facts["faults"]
    talk.close()
