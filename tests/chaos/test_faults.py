"""A fault that hit nobody is no hit and no excuse; one that did excuses no more than it has done."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.chaos import disks, excuses
from tests.chaos.choices import draw
from tests.chaos.conftest import RUN, Plant
from tests.chaos.faults import NO_VICTIM, strike
from tests.chaos.ground import Ground
from tests.chaos.points import Event, Watch
from tests.chaos.scene import Scene

RUNNING = {"what": "end", "outcome": "running", "status": 0, "t": 100.0}
NOBODY = ["kill-job", "kill-job-thrice", "kill-agent", "kill-new", "interrupt", "kill-session", "kill-minder"]


@pytest.fixture
def scene(ground: Ground) -> Iterator[Scene]:
    """A run whose controller has ended, and of which nothing is left."""
    with subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.DEVNULL) as over:
        over.wait()
        watch = Watch(ground, over, set())
        watch.run = RUN
        [choice] = draw(seed=1, rounds=1, fault="kill-new", point="end")
        yield Scene(ground, choice, over, watch)


@pytest.mark.lab
@pytest.mark.parametrize("fault", NOBODY)
def test_what_nobody_is_there_for_is_no_hit(scene: Scene, fault: str) -> None:
    scene.choice = replace(scene.choice, fault=fault)
    assert strike(scene) == NO_VICTIM
    assert not scene.hit and not excuses.ended_by_the_round(scene, RUNNING) and not excuses.needs_no_end(scene)


@pytest.mark.lab
@pytest.mark.parametrize("killed_at, excused", [(98.0, False), (99.5, True)])
def test_a_killed_program_excuses_a_run_only_when_its_check_had_passed(scene: Scene, plant: Plant, killed_at: float, excused: bool) -> None:
    plant({"what": "checked", "t": 99.0}, RUNNING)
    scene.hit, scene.kills = True, [killed_at]
    assert excuses.ended_by_the_round(scene, RUNNING) == excused


@pytest.mark.lab
@pytest.mark.parametrize("struck_at, excused", [(99.0, False), (101.0, True)])
def test_a_stopped_container_excuses_only_what_was_said_before(scene: Scene, struck_at: float, excused: bool) -> None:
    scene.choice = replace(scene.choice, fault="stop-container")
    scene.hit, scene.struck_at = True, struck_at
    assert excuses.ended_by_the_round(scene, RUNNING) == excused


@pytest.mark.lab
def test_a_job_that_was_killed_needs_no_end_only_when_nobody_followed_it(scene: Scene, plant: Plant) -> None:
    scene.choice, scene.hit = replace(scene.choice, fault="kill-job"), True
    plant({"what": "cutover", "job_pid": 7})
    assert not excuses.needs_no_end(scene)
    plant({"what": "cutover", "job_pid": 7}, {"what": "lingering", "detail": None})
    assert excuses.needs_no_end(scene)


@pytest.mark.lab
def test_a_point_after_the_controller_has_left_is_reached_only_where_the_job_lingers(scene: Scene, plant: Plant) -> None:
    plant({"what": "begin"}, here=True)
    lingering: Event = {"what": "lingering", "detail": None}

    def goes_on(*before: Event) -> bool:
        plant(*before)
        watch = Watch(scene.ground, scene.controller, set())
        return watch.reach("launched", within=5, ready=lambda: plant(*before, {"what": "launched"}))

    assert goes_on(lingering)
    assert not goes_on({"what": "stopped"})
    assert not goes_on(lingering, {"what": "end"})


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)], check=True)
    yield tmp_path
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


def _takes(file: Path) -> bool:
    with suppress(OSError):
        file.write_bytes(bytes(4096))
        return True
    return False


def test_a_second_writer_takes_each_block_that_is_given_up(small_disk: Path) -> None:
    reserve = small_disk / "reserve"
    reserve.write_bytes(bytes(8192))
    end = disks.keep_full(small_disk / "big")
    try:
        reserve.unlink()
        until = time.monotonic() + 5
        while _takes(reserve):
            assert time.monotonic() < until
            reserve.unlink()
    finally:
        end()
    disks.free(small_disk / "big")
    assert _takes(reserve)
