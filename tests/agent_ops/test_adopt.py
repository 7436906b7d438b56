"""Which processes can be started again by themselves, and what of them leaves the target: real processes, looked at."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from deployctl.agent import adopt, capture, procfs
from deployctl.agent.faults import Refused
from tests.agent_ops import start, until

SLEEP = "import sys, time; print(0, flush=True); time.sleep(600)"
SPAWN = """
import multiprocessing, time
if __name__ == "__main__":
    child = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(600,))
    child.start()
    print(child.pid, flush=True)
    child.join()
"""
TITLE = "import time; from deployctl.agent.title import show_as; show_as('VLLM::Worker TP0'); print(0, flush=True); time.sleep(600)"


@pytest.fixture
def started() -> Iterator[Any]:
    """Starts a code; answers the pid that it prints, its own for 0, once that process is a program of its own."""
    processes: list[subprocess.Popen[bytes]] = []

    def begin(code: str, *words: str, **more: Any) -> int:
        processes.append(start(code, *words, **more))
        out = processes[-1].stdout
        assert out is not None
        pid = int(out.readline()) or processes[-1].pid
        until(lambda: any((procfs.look(pid) or {"argv": []})["argv"]), "an argv")
        return pid

    yield begin
    for process in processes:
        for child in [pid for pid in procfs.everyone() if (procfs.glance(pid) or process).pid == pid and _parent(pid) == process.pid]:
            os.kill(child, 9)
        process.kill()
        process.communicate()


def _parent(pid: int) -> int:
    glance = procfs.glance(pid)
    return glance.ppid if glance is not None else 0


def adopted(pid: int) -> dict[str, Any]:
    return adopt.of(procfs.look(pid) or {}, capture.capture(pid))


def test_a_process_is_told_with_every_word_of_its_command_line(started: Any) -> None:
    words = ["", "two words\nsecond line", "--name=Grüße"]
    found = adopted(started(SLEEP, *words, cwd="/"))
    assert found["argv"] == [sys.executable, "-c", SLEEP, *words]
    assert (found["directory"], found["user"], found["log"]) == ("/", None, None)
    assert "pipe" in found["notes"]


def test_no_secret_leaves_the_target(started: Any) -> None:
    secret = "s3cret-of-test-adopt"
    surroundings = {
        "HF_TOKEN": secret, "WANDB_API_KEY": secret, "HF_ENDPOINT": f"https://anna:{secret}@example.org", "MY_SETTING": secret,
        "HF_HOME": "/data/hf", "SSH_CLIENT": secret,
    }  # fmt: skip
    found = adopted(started(SLEEP, environment=surroundings))
    assert secret not in repr(found)
    assert found["environment"]["HF_HOME"] == "/data/hf"
    assert {"HF_TOKEN", "WANDB_API_KEY", "HF_ENDPOINT", "MY_SETTING"} <= set(found["names"])
    assert "SSH_CLIENT" not in found["names"]


def test_a_rank_is_refused_and_its_launcher_named(started: Any) -> None:
    pid = started(SLEEP, environment={"RANK": "0", "LOCAL_RANK": "0"})
    with pytest.raises(Refused, match=f"process {pid} is a rank, started by pid {os.getpid()}"):
        adopted(pid)


def test_a_spawned_worker_is_refused_and_its_parent_named(started: Any, tmp_path: Any) -> None:
    script = tmp_path / "spawns.py"
    script.write_text(SPAWN)
    pid = started("import os, sys; os.execv(sys.executable, [sys.executable, sys.argv[1]])", str(script))
    until(lambda: "-c" in (procfs.look(pid) or {"argv": []})["argv"], "the worker")
    with pytest.raises(Refused, match="is a worker that another process started") as caught:
        adopted(pid)
    assert f"pid {_parent(pid)}" in caught.value.todo


def test_a_title_is_refused(started: Any) -> None:
    with pytest.raises(Refused, match="has written over its command line"):
        adopted(started(TITLE))
