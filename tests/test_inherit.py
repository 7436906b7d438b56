"""`command: inherit`: a process that somebody started by hand, restarted as it runs but for the flags that are asked for."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from deployctl import playbook
from deployctl.errors import WordsError
from tests.site import Site, until

FLAGS = {"seed": {"type": "int"}, "level": {"type": "int", "env": "DFLASH_LEVEL"}}
WORKLOAD = {"name": "train", "command": "inherit", "match": "t.py", "log": "logs/train.log"}


@pytest.fixture
def inheriting(local_site: Site) -> Site:
    """A playbook that knows of the trainer but its name."""
    local_site.check = {"alive": "200ms"}
    playbook = {
        "workload": {"name": "train", "command": "inherit", "match": local_site.script, "log": "logs/train.log"},
        "flags": FLAGS, "steps": [{"stop": local_site.ladder}, "launch", {"check": local_site.check}],
    }  # fmt: skip
    (local_site.home / "playbooks" / "restart.yaml").write_text(json.dumps(playbook))
    return local_site


@pytest.fixture
def by_hand(inheriting: Site) -> Iterator[Callable[..., dict[str, Any]]]:
    """Starts the trainer as a person does: a shell's environment, its directory, a umask of its own."""
    started: list[subprocess.Popen[bytes]] = []

    def start(python: str, *words: str, **environment: str) -> dict[str, Any]:
        directory = Path(inheriting.directory)
        (directory / "logs").mkdir(exist_ok=True)
        surroundings = {**inheriting.environment(), "PYTHONUNBUFFERED": "1", "DFLASH_SHARDS": "a b", "DFLASH_LEVEL": "1", **environment}
        argv = [python, inheriting.script, *inheriting.command[2:], *words]
        with (directory / "logs" / "train.log").open("ab") as log:
            files = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
            started.append(subprocess.Popen(argv, cwd=directory, env=surroundings, start_new_session=True, umask=0o027, **files))
        until("the trainer works", lambda: started[-1].poll() is not None or inheriting.steps())
        [seen] = inheriting.trainers()
        return seen

    yield start
    for process in started:
        process.kill()
        process.wait(20)


Start = Callable[..., dict[str, Any]]


def test_all_but_the_flags_is_as_it_ran(inheriting: Site, by_hand: Start) -> None:
    venv = inheriting.home / "venv"
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", venv], check=True, timeout=60)
    path = f"{venv}/bin:{os.environ['PATH']}"
    before = by_hand("python3", "--seed", "3", PATH=path, VIRTUAL_ENV=str(venv), SSH_TTY="/dev/pts/9")
    plan = inheriting.restart("--plan", "--seed", "4")
    assert "~ --seed=4  (was --seed 3)" in plan.stdout
    inheriting.restart("--seed", "4", "--unset", "level")
    [now] = inheriting.trainers()
    assert now["argv"] == [*before["argv"][:-2], "--seed=4"]
    assert now["cwd"] == before["cwd"]
    assert "Umask:\t0027" in now["status"]
    kept = {name: text for name, text in now["environment"].items() if not name.startswith("DEPLOYCTL_")}
    gone = {name: before["environment"][name] for name in ("SSH_TTY", "DFLASH_LEVEL")}
    assert {**kept, **gone} == before["environment"]
    assert os.path.realpath(f"/proc/{now['pid']}/exe") == os.path.realpath(venv / "bin" / "python3")


def test_a_rank_is_not_inherited_and_nothing_is_touched(inheriting: Site, by_hand: Start) -> None:
    before = by_hand("/usr/bin/python3", LOCAL_RANK="0", RANK="0")
    done = inheriting.restart("--seed", "4", status=1)
    assert f"process {before['pid']} is a rank, started by pid {os.getpid()}" in done.stderr + done.stdout
    assert [seen["pid"] for seen in inheriting.trainers()] == [before["pid"]]
    assert [event for event in inheriting.events() if event["what"] == "cutover"] == []


def test_what_does_not_run_cannot_be_inherited(inheriting: Site) -> None:
    done = inheriting.restart(status=1)
    assert "nothing runs whose command line could be taken" in done.stderr + done.stdout


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        ({"match": None}, "'command: inherit' wants a 'match'"),
        ({"match": {"directory": "/srv"}}, "'command: inherit' wants a 'match'"),
        ({"directory": "/srv"}, "workload: directory: it is inherited"),
        ({"user": "anna"}, "workload: user: it is inherited"),
        ({"command": ["t"]}, "workload: 'directory' is missing"),
    ],
)
def test_a_playbook_says_nothing_that_it_inherits(tmp_path: Path, workload: dict[str, Any], said: str) -> None:
    whole = {name: value for name, value in {**WORKLOAD, **workload}.items() if value is not None}
    (tmp_path / "restart.yaml").write_text(json.dumps({"workload": whole, "steps": ["launch"]}))
    with pytest.raises(WordsError, match=said):
        playbook.load(tmp_path / "restart.yaml")
