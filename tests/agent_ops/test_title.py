"""The title: what ps shows of a process of ours, and nothing else of it is touched."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator

import pytest

from tests.agent_ops import read, start

SHOW = """
import sys, time
from deployctl.agent.title import show_as
for title in sys.argv[2:]:
    show_as(title)
print("shown", flush=True)
time.sleep(600)
"""


@pytest.fixture
def shown() -> Iterator[Callable[..., int]]:
    """Starts a process that shows itself as the titles, one after the other; its pid."""
    running = []

    def run(*titles: str, room: int = 200) -> int:
        process = start(SHOW, "x" * room, *titles, environment={"KEPT": "as it was"})
        running.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"shown\n"
        return process.pid

    yield run
    for process in running:
        process.kill()
        process.communicate()


def line(pid: int) -> bytes:
    return read(f"/proc/{pid}/cmdline").rstrip(b"\0")


def test_the_command_line_is_the_title(shown: Callable[..., int]) -> None:
    assert line(shown("deployctl: job of train (run 1)")) == b"deployctl: job of train (run 1)"


def test_a_shorter_title_leaves_nothing_of_a_longer_one(shown: Callable[..., int]) -> None:
    assert line(shown("deployctl: session of a workload with a long name", "deployctl: job")) == b"deployctl: job"


def test_the_name_of_the_process_is_ours(shown: Callable[..., int]) -> None:
    assert read(f"/proc/{shown('deployctl: job')}/comm") == b"deployctl\n"


@pytest.mark.skipif(shutil.which("ps") is None, reason="there is no ps")
def test_ps_shows_it(shown: Callable[..., int]) -> None:
    pid = shown("deployctl: job of train (run 1)")
    done = subprocess.run(["ps", "-o", "args=", "-p", str(pid)], stdout=subprocess.PIPE, check=True)
    assert done.stdout.strip() == b"deployctl: job of train (run 1)"


def test_a_title_without_room_is_cut_and_the_environment_stays(shown: Callable[..., int]) -> None:
    pid = shown("deployctl: " + "y" * 100_000, room=1)
    assert line(pid).startswith(b"deployctl: yyy")
    assert b"KEPT=as it was\0" in read(f"/proc/{pid}/environ")


def test_a_title_that_is_not_ascii_is_shown_as_far_as_it_is(shown: Callable[..., int]) -> None:
    assert line(shown("deployctl: job of größe")) == b"deployctl: job of gr??e"
