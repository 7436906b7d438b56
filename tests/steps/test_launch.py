"""launch: the program itself, without a shell, in a session of its own, as the playbook says and as nobody else does."""

from __future__ import annotations

import grp
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
from deployctl.steps.base import Opened
from deployctl.steps.launch import Launch
from deployctl.steps.stop import Stop, rung
from tests.steps import RUN, WHO, Talk, opened, refusal, said, setting, steps_of, until

# Writes down, as JSON, how it finds itself; then waits.
TELL = """import json, os, resource, signal, sys, time
blocked = [int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, [])]
ignored = [int(n) for n in signal.valid_signals() if signal.getsignal(n) is signal.SIG_IGN]
umask = os.umask(0)
facts = {"argv": sys.argv, "cwd": os.getcwd(), "env": dict(os.environ), "uid": os.getuid(), "groups": os.getgroups(),
         "umask": umask, "session": os.getsid(0) == os.getpid(), "stdin": os.readlink("/proc/self/fd/0"),
         "nice": os.nice(0), "nofile": resource.getrlimit(resource.RLIMIT_NOFILE), "weight": int(open("/proc/self/oom_score_adj").read()),
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

    def launch(self, *words: str, settle: str = "0", **changes: Any) -> list[dict[str, Any]]:
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
        events = talk.job(*Launch(settle=settle).compile(setting(**plan), None).do)
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


def test_a_launch_has_one_key(tmp_path: Path) -> None:
    assert steps_of(tmp_path, "  - launch: {settle: 5s}\n") == (Launch(settle="5s"),)
    assert refusal(tmp_path, "  - stop\n  - launch:\n      user: bob\n")[:2] == (9, "launch: 'user' is no key of launch")


@pytest.mark.parametrize("fact", ["process", "environment", "program", "start", "interpreter"])
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
        "log": "a.log", "user": "bob", "settle": 2.0,
    }  # fmt: skip


def test_what_undoes_a_launch_is_the_stop_of_what_was_launched() -> None:
    [undo] = Launch().compile(setting(), None).undo
    assert (undo["op"], undo["who"]) == ("stop", "launched")
    assert [rung["signal"] for rung in undo["ladder"]] == ["INT", "TERM", "KILL"]


# --- in a target


def test_no_shell_reads_the_words(place: Place) -> None:
    words = ["$HOME", "a b", "`id`", "; exit", "*", "", "--x=\"'", "ä\n"]
    assert place.facts(*words)["argv"] == ["tell.py", *words]


def test_another_program_by_its_path_is_told_with_the_one_that_runs() -> None:
    events: list[tuple[str, dict[str, Any]]] = []
    old = {"path": "/opt/v/bin/python3", "interpreter": "/opt/v/bin/python3", "prefix": "/opt/v", "other": True}
    new = {**old, "path": "/usr/bin/python3", "prefix": None}
    found = Opened(None, new, old, {}, environment={"lost": ["HF_HOME"], "changed": []})
    Launch().admit(setting(), found, lambda what, **fields: events.append((what, fields)))
    assert events == [
        ("program", {"path": "/usr/bin/python3", "prefix": None, "was": "/opt/v/bin/python3"}),
        ("environment", {"base": "clean", "lost": ["HF_HOME"], "changed": []}),
    ]


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


# --- who and how heavy


def test_umask_nice_limits_and_weight_are_those_of_the_playbook(place: Place) -> None:
    limits = {"RLIMIT_NOFILE": (100, 200)}
    facts = place.facts(umask=0o027, nice=5, oom_score_adj=300, limits=limits)
    assert (facts["umask"], facts["nice"], facts["weight"], facts["nofile"]) == (0o027, 5, 300, [100, 200])


def test_groups_are_those_of_the_playbook(place: Place) -> None:
    facts = place.facts(user="nobody", groups=("daemon", "12345"))
    assert facts["uid"] == pwd.getpwnam("nobody").pw_uid
    assert sorted(facts["groups"]) == sorted([grp.getgrnam("daemon").gr_gid, 12345])


@pytest.mark.parametrize(
    ("changes", "fact", "what", "where"),
    [
        ({"groups": ("no-such-group",)}, "start", "there is no group 'no-such-group'", "workload: groups"),
        ({"limits": {"RLIMIT_NOFILE": (1 << 40, 1 << 40)}}, "start", "cannot set the limit nofile: ", "workload"),
        ({"env_file": "no-such-file"}, "environment", "env_file cannot be read: No such file", "no-such-file"),
        ({"environment_base": "inherit"}, "environment", "nothing runs whose environment could be inherited", "environment_base"),
    ],
)
def test_what_would_fail_after_the_stop_is_found_before_it(place: Place, changes: dict[str, Any], fact: str, what: str, where: str) -> None:
    talk = Talk(place.home, directory=str(place.home), command=("python3", "tell.py"), match="no-such.py", **changes)
    found = talk.facts["faults"][fact]
    assert found["what"].startswith(what)
    assert where in found["where"]
    talk.close()


def test_a_user_who_may_not_enter_the_directory_is_found_before_the_stop(place: Place) -> None:
    (place.home / "closed").mkdir(mode=0o700)
    talk = Talk(place.home, directory=f"{place.home}/closed", command=("python3", "tell.py"), match="no-such.py", user="nobody")
    assert talk.facts["faults"]["start"]["what"] == "cannot enter the directory: Permission denied"
    talk.close()
    events = place.launch(directory=f"{place.home}/closed", user="nobody")
    assert said(events, "failed")[0]["why"] == "cannot enter the directory: Permission denied"


# --- the environment


def test_the_values_of_a_file_reach_the_program_and_nobody_else(place: Place) -> None:
    (place.home / "env").write_text("API_TOKEN=hunter2\n")
    events = place.launch(env_file="env")
    until("the program tells", (place.home / "facts").exists)
    assert json.loads((place.home / "facts").read_text())["env"]["API_TOKEN"] == "hunter2"
    assert "API_TOKEN" in said(events, "launched")[0]["environment"]
    written = [path.read_text() for path in (place.home / "state").rglob("*") if path.is_file()]
    assert [text for text in [*written, json.dumps(events)] if "hunter2" in text] == []


def test_an_inherited_environment_is_that_of_the_old_process(place: Place) -> None:
    name = f"tell_{secrets.token_hex(4)}.py"
    (place.home / name).write_text(TELL)
    plan = {"command": (sys.executable, name), "match": name}
    place.launch(environment={"HF_HOME": "/data/hf", "OLD": "1"}, **plan)
    until("the old one tells", (place.home / "facts").exists)
    (place.home / "facts").unlink()
    talk = Talk(place.home, "20260101-000008-aaaa", directory=str(place.home), **plan)
    assert talk.facts["environment"] == {"lost": ["HF_HOME"], "changed": []}
    talk.close()
    whole = {"directory": str(place.home), "log": "logs/a.log", "environment_base": "inherit", "environment": {"NEW": "1"}, **plan}
    talk = Talk(place.home, "20260101-000009-aaaa", **whole)
    stop = Stop.model_validate({"ladder": [rung("KILL 20s")]})
    events = talk.job(*stop.compile(setting(**whole), None).do, *Launch(settle="0").compile(setting(**whole), None).do)
    talk.close()
    place.pids += [event["pid"] for event in said(events, "launched")]
    until("the new one tells", (place.home / "facts").exists)
    env = json.loads((place.home / "facts").read_text())["env"]
    assert (env["HF_HOME"], env["OLD"], env["NEW"], env["DEPLOYCTL_RUN"]) == ("/data/hf", "1", "1", "20260101-000009-aaaa")


def test_a_process_that_was_stopped_again_is_not_said_to_run(place: Place) -> None:
    plan = {"directory": str(place.home), "command": ("python3", "tell.py"), "match": "no-such.py", "log": "a.log"}
    talk = Talk(place.home, **plan)
    launch = Launch(settle="0").compile(setting(**plan), None)
    fails = {"op": "check", "alive": 0.0, "log": "no such line", "within": 0.2}
    undo = ({"op": "stop", "who": "launched", "ladder": [{"signal": "KILL", "wait": 20.0}]},)
    events = talk.job(*launch.do, fails, undo=undo)
    talk.close()
    assert (events[-1]["outcome"], events[-1]["process"]) == ("rolled-back", None)


# --- the first seconds, and the minder


def test_one_that_dies_in_its_first_seconds_is_shown_with_its_end_and_its_log(place: Place) -> None:
    events = place.launch(command=("python3", "-c", "import no_such_module"), settle="30s")
    [failed] = said(events, "failed")
    assert (failed["op"], failed["exit"]["status"]) == ("launch", 1)
    assert failed["tail"][-1] == "ModuleNotFoundError: No module named 'no_such_module'"
    assert events[-1]["status"] != 0


def test_the_minder_is_small_and_knows_no_secret(place: Place) -> None:
    events = place.launch(environment={"API_TOKEN": "hunter2"})
    status = Path(f"/proc/{said(events, 'launched')[0]['pid']}/status").read_text()
    minder = Path("/proc") / next(line.split()[1] for line in status.splitlines() if line.startswith("PPid"))
    until("it shows itself", lambda: (minder / "cmdline").read_bytes().startswith(b"deployctl: minder of train (run "))
    assert b"hunter2" not in (minder / "environ").read_bytes() + (minder / "cmdline").read_bytes()
    sizes = dict(line.split(":") for line in (minder / "smaps_rollup").read_text().splitlines()[1:])
    assert int(sizes["Private_Dirty"].split()[0]) < 6000, "kB; a whole agent has more than 8000"
