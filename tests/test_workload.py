"""The workload of a playbook: what it is started as, and what its launcher needs in its environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from deployctl.errors import WordsError
from deployctl.inventory import TargetSpec
from deployctl.plan import Plan, bind
from deployctl.playbook import load
from deployctl.preview import Preview
from deployctl.report import plans
from deployctl.workload import ELASTIC, Rung, implied

LADDER = (Rung("INT", 179.5), Rung("KILL", 10.0))


@pytest.mark.parametrize(
    "command",
    [
        "torchrun --nproc-per-node 8 train.py",
        "/opt/v/bin/torchrun --standalone train.py",
        "python3 -m torch.distributed.run train.py",
        "uv run torchrun train.py",
        "env A=1 nice -n 5 torchrun train.py",
        "accelerate launch --multi_gpu train.py",
        "python -m accelerate.commands.launch train.py",
    ],
)
def test_an_elastic_launcher_waits_as_long_as_the_first_rung_and_30_seconds(command: str) -> None:
    assert implied(command.split(), {}, LADDER) == {ELASTIC: "210"}


@pytest.mark.parametrize(
    "command",
    [
        "python3 train.py",
        "python3 train.py --launcher torchrun",
        "python3 -m pkg.train torchrun",
        "accelerate config",
        "torchrun --shutdown-timeout 60 train.py",
        "torchrun --shutdown_timeout=60 train.py",
    ],
)
def test_no_other_command_gets_it_nor_one_that_sets_it(command: str) -> None:
    assert implied(command.split(), {}, LADDER) == {}


def test_the_playbook_s_own_value_stays() -> None:
    assert implied(("torchrun", "train.py"), {ELASTIC: "5"}, LADDER) == {}


# --- the keys of a playbook


def bound(home: Path, keys: str, command: str = "python3, train.py") -> Plan:
    """The plan of a playbook whose workload has these keys; the first one is in line 5."""
    head = f"workload:\n  name: train\n  directory: /srv/a\n  command: [{command}]\n"
    (home / "restart.yaml").write_text(f"{head}{keys}steps:\n  - stop: [INT 60s]\n")
    return bind(load(home / "restart.yaml"), TargetSpec("here", "local", None, None), {})


def test_what_a_program_is_started_as_reaches_the_agent_as_numbers(tmp_path: Path) -> None:
    keys = "  umask: 0027\n  nice: -5\n  oom_score_adj: 300\n  groups: [video, 44]\n"
    keys += "  limits: {nofile: 65536, core: unlimited, memlock: '64:unlimited'}\n  env_file: env\n  environment_base: inherit\n"
    found = bound(tmp_path, keys).workload.as_data()
    assert (found["umask"], found["nice"], found["oom_score_adj"], found["groups"]) == (0o027, -5, 300, ["video", "44"])
    assert found["limits"] == {"RLIMIT_NOFILE": [65536, 65536], "RLIMIT_CORE": [-1, -1], "RLIMIT_MEMLOCK": [64, -1]}
    assert (found["env_file"], found["environment_base"]) == ("env", "inherit")


@pytest.mark.parametrize(
    ("key", "what", "todo"),
    [
        ("umask: 22", "workload: umask: '22' is no umask", "three octal digits"),
        ("umask: 0o27", "workload: umask: '0o27' is no umask", "three octal digits"),
        ("nice: 20", "workload: nice: '20' is above 19", "correct"),
        ("limits: {files: 5}", "workload: limits: files: 'files' is no limit", ""),
        ("limits: {nofile: 5k}", "workload: limits: nofile: '5k' is no limit", "'unlimited'"),
        ("limits: {nofile: '9:5'}", "workload: limits: nofile: '9:5': the soft limit is above", "SOFT:HARD"),
        ("limits: {nofile: 'unlimited:5'}", "workload: limits: nofile: 'unlimited:5': the soft limit is above", "SOFT:HARD"),
        ("log: 'a-${day}.log'", "workload: log: '${day}' is nothing that a log's name may hold", "${run}"),
        ("environment_base: none", "workload: environment_base: 'none' is not 'clean' or 'inherit'", ""),
    ],
)
def test_a_faulty_key_is_refused_in_its_line(tmp_path: Path, key: str, what: str, todo: str) -> None:
    with pytest.raises(WordsError) as caught:
        bound(tmp_path, f"  {key}\n")
    assert caught.value.where.endswith("restart.yaml:5")
    assert caught.value.what.startswith(what)
    assert todo in caught.value.todo


def test_a_log_may_be_another_one_for_each_run(tmp_path: Path) -> None:
    plan = bound(tmp_path, "  log: 'logs/a-${run}.log'\n")
    assert plan.workload.log == f"logs/a-{plan.run}.log"


def test_the_plan_shows_what_the_new_program_gets_and_lacks(tmp_path: Path) -> None:
    plan = bound(tmp_path, "", command="/opt/v/bin/torchrun, train.py")
    found = {
        "process": None, "run": None, "faults": {}, "environment": {"lost": ["HF_HOME"], "changed": ["CUDA_HOME"]},
        "program": {"path": "/opt/v/bin/torchrun"}, "old_program": {"path": "/usr/bin/torchrun", "other": True},
    }  # fmt: skip
    told = "\n".join(plans.lines(Preview(plan.describe(), found, (), None, ())))
    assert "set        TORCH_ELASTIC_SHUTDOWN_TIMEOUT=90 (the first rung and 30 s)" in told
    assert "program    /opt/v/bin/torchrun; the running process uses /usr/bin/torchrun" in told
    assert "lost: HF_HOME" in told
    assert "changed: CUDA_HOME" in told
