"""bind and compile_job: a playbook becomes data, in the order in which the target will do it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from deployctl.errors import WordsError
from deployctl.inventory import TargetSpec
from deployctl.plan import Plan, bind, compile_job
from deployctl.playbook import load
from deployctl.steps.push import Staged
from deployctl.steps.verify import Verified
from deployctl.workload import DEFAULT_LADDER, Rung

HERE = TargetSpec("here", "local", None, None)
WHO = {"user": "anna", "host": "lab", "pid": 1}
WORKLOAD = """
description: restart it
workload:
  name: train
  directory: /srv/a
  command: [python3, train.py, --batch, 4]
  log: logs/a.log
  environment: {A: 1}
flags:
  profile-interval: {type: int, min: 0}
  rate: {type: float, default: 0.10}
  fast: {type: bool}
"""
FULL = """
steps:
  - push: {from: train, to: /srv/a}
  - verify: py_compile
  - stop: [INT 20s, KILL 1s]
  - launch
  - check: {alive: 1s}
"""
STAGED = Staged("/srv/a", ("a.py",))
VERIFIED = Verified(1, "/usr/bin/python3", "3.11.2")


def plan(home: Path, steps: str = FULL, values: dict[str, Any] | None = None, extra: tuple[str, ...] = (), more: str = "") -> Plan:
    """A plan of a playbook of these steps; its sources are one file."""
    (home / "train").mkdir(exist_ok=True)
    (home / "train" / "a.py").write_text("new\n")
    (home / "restart.yaml").write_text(WORKLOAD + more + steps)
    return bind(load(home / "restart.yaml"), HERE, values or {}, extra)


def words(operations: list[dict[str, Any]]) -> list[str]:
    return [" ".join(str(operation[key]) for key in ("op", "who", "as") if key in operation) for operation in operations]


# --- bind


def test_a_plan_is_bound_to_its_target_and_its_run(tmp_path: Path) -> None:
    first, second = plan(tmp_path), plan(tmp_path)
    assert (first.playbook, first.target, first.workload.name) == ("restart", HERE, "train")
    assert first.run != second.run


def test_a_flag_meets_the_command_of_the_playbook(tmp_path: Path) -> None:
    bound = plan(tmp_path, values={"profile-interval": 60, "rate": 0.5, "fast": True})
    assert bound.workload.command == ("python3", "train.py", "--profile-interval=60", "--rate=0.5", "--fast", "--batch", "4")
    assert bound.flags == {"profile-interval": 60, "rate": 0.5, "fast": True}


def test_a_default_stands_where_nothing_was_said(tmp_path: Path) -> None:
    assert "--rate=0.10" in plan(tmp_path).workload.command


def test_a_zero_and_a_false_are_values(tmp_path: Path) -> None:
    bound = plan(tmp_path, values={"profile-interval": 0, "fast": False})
    assert bound.flags == {"profile-interval": 0, "rate": 0.1, "fast": False}
    assert "--profile-interval=0" in bound.workload.command
    assert "--fast" not in bound.workload.command


def test_the_extra_words_win_over_all_else(tmp_path: Path) -> None:
    bound = plan(tmp_path, values={"rate": 0.5}, extra=("--rate=0.9", "--batch=8", "--new"))
    assert bound.workload.command == ("python3", "train.py", "--rate=0.9", "--new", "--batch=8")


def test_an_extra_word_that_is_no_flag_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WordsError, match="'ct201' is no flag"):
        plan(tmp_path, extra=("ct201",))


def test_sources_start_where_the_playbook_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert [source.path for source in plan(tmp_path).gathered[0]] == ["a.py"]


def test_a_playbook_behind_a_link_has_its_sources_beside_the_real_file(tmp_path: Path) -> None:
    plan(tmp_path)
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "other.yaml").symlink_to(tmp_path / "restart.yaml")
    bound = bind(load(tmp_path / "links" / "other.yaml"), HERE, {})
    assert (bound.playbook, [source.path for source in bound.gathered[0]]) == ("other", ["a.py"])


@pytest.mark.parametrize(
    ("steps", "ladder"),
    [("steps: [{stop: [TERM 5s]}, launch]\n", (Rung("TERM", 5),)), ("steps: [launch]\n", DEFAULT_LADDER)],
)
def test_the_ladder_of_the_plan_is_that_of_its_stop(tmp_path: Path, steps: str, ladder: tuple[Rung, ...]) -> None:
    assert plan(tmp_path, steps).setting.ladder == ladder


def test_binding_twice_does_not_change_the_playbook(tmp_path: Path) -> None:
    plan(tmp_path, values={"profile-interval": 1})
    loaded = load(tmp_path / "restart.yaml")
    commands = [bind(loaded, HERE, {"profile-interval": value}).workload.command[2] for value in (60, 30)]
    assert commands == ["--profile-interval=60", "--profile-interval=30"]


def test_a_plan_is_described_as_data(tmp_path: Path) -> None:
    described = json.loads(json.dumps(plan(tmp_path, values={"profile-interval": 60}).describe()))
    assert (described["playbook"], described["target"], described["flags"]) == ("restart", "here", {"profile-interval": 60, "rate": 0.1})
    assert [step["step"] for step in described["steps"]] == ["push", "verify", "stop", "launch", "check"]


# --- compile_job


def compiled(bound: Plan, *pieces: Any) -> dict[str, Any]:
    return compile_job(bound, pieces, WHO)


def test_the_files_go_live_right_before_the_launch(tmp_path: Path) -> None:
    job = compiled(plan(tmp_path), STAGED, VERIFIED, None, None, None)
    assert words(job["do"]) == ["stop before", "golive", "launch new", "check"]


def test_what_was_done_is_undone_in_reverse_order(tmp_path: Path) -> None:
    job = compiled(plan(tmp_path), STAGED, VERIFIED, None, None, None)
    assert words(job["undo"]) == ["stop launched", "goback", "launch before", "check"]


def test_without_a_launch_the_files_go_live_at_the_end(tmp_path: Path) -> None:
    job = compiled(plan(tmp_path, "steps: [{push: {from: train, to: /srv/a}}, stop]\n"), STAGED, None)
    assert words(job["do"]) == ["stop before", "golive"]


def test_a_push_alone_is_a_golive(tmp_path: Path) -> None:
    job = compiled(plan(tmp_path, "steps: [{push: {from: train, to: /srv/a}}]\n"), STAGED)
    assert (words(job["do"]), words(job["undo"])) == (["golive"], ["goback"])


def test_a_push_of_nothing_new_is_no_operation(tmp_path: Path) -> None:
    job = compiled(plan(tmp_path), Staged("/srv/a", ()), VERIFIED, None, None, None)
    assert words(job["do"]) == ["stop before", "launch new", "check"]
    assert "goback" not in words(job["undo"])


def test_a_playbook_that_changes_nothing_is_an_empty_job(tmp_path: Path) -> None:
    assert compiled(plan(tmp_path, "steps: [{push: {from: train, to: /srv/a}}]\n"), Staged("/srv/a", ()))["do"] == []


def test_two_pushes_go_live_in_their_order_and_back_in_the_other(tmp_path: Path) -> None:
    steps = "steps: [{push: {from: train, to: /srv/a}}, {push: {from: train, to: /srv/b}}, launch]\n"
    job = compiled(plan(tmp_path, steps), STAGED, Staged("/srv/b", ("a.py",)), None)
    roots = {which: [operation["sets"][0]["root"] for operation in job[which] if "sets" in operation] for which in ("do", "undo")}
    assert roots == {"do": ["/srv/a", "/srv/b"], "undo": ["/srv/b", "/srv/a"]}


def test_on_failure_leave_undoes_nothing(tmp_path: Path) -> None:
    job = compiled(plan(tmp_path, more="on_failure: leave\n"), STAGED, VERIFIED, None, None, None)
    assert job["undo"] == []
    assert words(job["do"]) == ["stop before", "golive", "launch new", "check"]


def test_a_job_is_plain_data_that_names_its_run(tmp_path: Path) -> None:
    bound = plan(tmp_path, values={"profile-interval": 60})
    job = compiled(bound, STAGED, VERIFIED, None, None, None)
    assert json.loads(json.dumps(job)) == job
    assert (job["version"], job["run"], job["who"], job["workload"]["name"]) == (1, bound.run, WHO, "train")
    launch = next(operation for operation in job["do"] if operation["op"] == "launch")
    assert launch["argv"] == job["workload"]["command"] == list(bound.workload.command)
    assert (launch["environment"], launch["directory"], launch["log"]) == ({"A": "1"}, "/srv/a", "logs/a.log")


def test_a_piece_too_few_is_no_job(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="argument"):
        compiled(plan(tmp_path), STAGED)
