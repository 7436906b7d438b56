"""How a program ended, as the minder keeps it and `deployctl status` says it: also when the kernel has killed it for memory."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deployctl.report import faults, states
from deployctl.steps.launch import Launch
from deployctl.target import Session
from deployctl.transports.local import Local
from tests.lab.cgroups import hierarchies
from tests.steps import RUN, WHO, said, setting, until, workload

LIMIT = 64 << 20  # bytes


@pytest.fixture
def small_group() -> Iterator[Path]:
    """A cgroup with little memory."""
    mounted = [
        path for path in hierarchies() if path.name == "memory" or (path / "memory.stat").exists() or (path / "cgroup.controllers").exists()
    ]
    for parent in mounted:
        group = parent / f"deployctl-test-{secrets.token_hex(4)}"
        try:
            group.mkdir()
        except OSError:
            continue
        for name, value in (
            ("memory.limit_in_bytes", LIMIT),
            ("memory.max", LIMIT),
            ("memory.memsw.limit_in_bytes", LIMIT),
            ("memory.swap.max", 0),
        ):
            if (group / name).exists():
                (group / name).write_text(str(value))
        if (group / "memory.limit_in_bytes").exists() or (group / "memory.max").exists():
            break
        group.rmdir()
    else:
        pytest.skip("no cgroup for memory can be made here")
    yield group
    until("the cgroup is empty", lambda: not (group / "cgroup.procs").read_text())
    group.rmdir()


class Ground:
    """An agent that lives in a cgroup, and what it launches."""

    def __init__(self, home: Path, group: Path | None) -> None:
        self.home = home
        self.plan: dict[str, Any] = {"directory": str(home), "command": ("python3", "a.py"), "match": "no-such.py", "log": "a.log"}
        python = home / "python"
        enter = f"echo $$ >{group}/cgroup.procs\n" if group else ""
        python.write_text(f'#!/bin/sh\n{enter}exec /usr/bin/env python3 "$@"\n')
        python.chmod(0o755)
        self.session = Session("here", Local("here"), python=str(python), state=str(home / "state"))

    def ended(self, body: str, **changes: Any) -> tuple[dict[str, Any], str]:
        """(what the minder wrote of a program of that text, what status says of it)."""
        (self.home / "a.py").write_text(body)
        plan = {**self.plan, **changes}
        self.session.ask("open", run=RUN, who=WHO, workload=workload(**plan).as_data())
        spec = {"version": 1, "run": RUN, "workload": workload(**plan).as_data(), "who": WHO, "undo": []}
        events = list(self.session.follow("job", job={**spec, "do": list(Launch(settle="0").compile(setting(**plan), None).do)}, events=[]))
        assert said(events, "launched") != []
        until("the end is written down", (self.home / "state" / "workloads" / "train" / "exit.json").exists)
        answer = self.session.ask("status", state=str(self.home / "state"))
        return answer["workloads"][0]["exit"], states.lines("here", answer)[0]


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone makes a cgroup")
def test_one_that_is_killed_for_memory_is_told_from_one_that_is_killed(tmp_path: Path, small_group: Path) -> None:
    ground = Ground(tmp_path, small_group)
    ended, told = ground.ended("import time\ntime.sleep(0.1)\nkept = bytearray(b'x' * (200 << 20))\n", oom_score_adj=1000)
    ground.session.close()
    assert (ended["signal"], ended["oom_kills"]) == (9, 1)
    assert " by SIGKILL, the " in told
    assert " was out of memory, after " in told


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone makes a cgroup")
def test_a_worker_that_is_killed_for_memory_is_told_with_the_status_of_its_parent(tmp_path: Path, small_group: Path) -> None:
    ground = Ground(tmp_path, small_group)
    body = "import os, sys\nif not os.fork():\n    kept = bytearray(b'x' * (200 << 20))\nos.wait()\nsys.exit(7)\n"
    ended, told = ground.ended(body, oom_score_adj=1000)
    ground.session.close()
    assert (ended["status"], ended["oom_kills"]) == (7, 1)
    assert "with status 7, the " in told
    assert "(1 process killed for it)" in told


def test_a_kill_by_hand_is_not_taken_for_one_by_the_kernel(tmp_path: Path) -> None:
    ground = Ground(tmp_path, None)
    ended, told = ground.ended("import os, time\ntime.sleep(0.2)\nos.kill(os.getpid(), 9)\n")
    ground.session.close()
    assert ended["signal"] == 9
    assert ended["lasted"] == pytest.approx(ended["ended"] - ended["begun"], abs=1)
    assert ended["lasted"] > 0.1
    if not ended.get("oom_kills"):  # others of this machine's cgroup may run out of memory just now
        assert " by SIGKILL, after " in told


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        ({"status": 3}, "status 3"),
        ({"signal": 11}, "killed by SIGSEGV"),
        ({"signal": 99}, "killed by signal 99"),
        ({"signal": 9, "oom_kills": 0}, "killed by SIGKILL"),
        ({"signal": 9, "oom_kills": 2, "memory_of": "container"}, "killed by SIGKILL, the container was out of memory"),
        ({"status": 1, "oom_kills": 2, "memory_of": "container"}, "status 1, the container was out of memory (2 processes killed for it)"),
    ],
)
def test_an_end_is_said_in_words(ended: dict[str, Any], expected: str) -> None:
    assert faults.how_ended(ended) == expected


def test_a_record_of_an_end_is_one_object(tmp_path: Path) -> None:
    ground = Ground(tmp_path, None)
    ground.ended("import sys\nsys.exit(3)\n")
    ground.session.close()
    file = tmp_path / "state" / "workloads" / "train" / "exit.json"
    assert json.loads(file.read_text())["status"] == 3
    assert file.stat().st_mode & 0o777 == 0o600
