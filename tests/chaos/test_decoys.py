"""Strangers under the pids that deployctl has on record."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator

import pytest

from tests.chaos import decoys
from tests.chaos.conftest import RUN, Plant
from tests.chaos.decoys import Decoy
from tests.chaos.eyes import Sight
from tests.chaos.ground import Ground

pytestmark = pytest.mark.lab


@pytest.fixture
def ended(ground: Ground) -> Sight:
    """The trainer, which has worked and is no more."""
    ground.launch_old()
    [trainer] = ground.sights()
    trainer.send(signal.SIGKILL)
    ground.until("it is gone", lambda: not trainer.alive)
    return trainer


@pytest.fixture
def stranger(ground: Ground, ended: Sight) -> Iterator[Decoy]:
    """Who has its pid now."""
    [given] = decoys.give(ground, {ended.inner: "the old pid"})
    yield given
    decoys.end([given])


def test_a_stranger_has_the_very_pid_of_the_trainer_that_ended(ended: Sight, stranger: Decoy) -> None:
    assert stranger.sight.alive and stranger.sight.inner == ended.inner
    assert not ended.alive and stranger.sight.started != ended.started


def test_a_signal_to_a_stranger_is_seen(ground: Ground, ended: Sight, stranger: Decoy) -> None:
    ground.place.exec("/bin/kill", "-INT", str(ended.inner))
    told = f"decoy 'the old pid' ({ended.inner}) got SIGINT"
    ground.until("it is noted", lambda: decoys.disturbed(ground, [stranger], may_be_dead=False) == [told])


def test_the_end_of_a_stranger_is_seen(ground: Ground, ended: Sight, stranger: Decoy) -> None:
    ground.place.exec("/bin/kill", "-KILL", str(ended.inner))
    told = f"decoy 'the old pid' ({ended.inner}) is dead"
    ground.until("it is missed", lambda: decoys.disturbed(ground, [stranger], may_be_dead=False) == [told])


def test_a_pid_that_a_process_has_is_given_to_nobody(ground: Ground, ended: Sight, stranger: Decoy) -> None:
    assert decoys.give(ground, {ended.inner: "the old pid"}) == []
    assert stranger.sight.alive


def test_the_pids_on_record_are_those_of_the_jobs_the_record_and_the_old_one(ground: Ground, plant: Plant) -> None:
    plant({"what": "cutover", "job_pid": 11}, {"what": "cutover", "job_pid": 12})
    ground.place.write(f"{ground.state}/workloads/train/record.json", json.dumps({"pid": 13}).encode())
    found = decoys.on_record(ground, RUN, Sight(1, 14, 0, ()))
    assert found == {11: "the job's pid", 12: "the job's pid", 13: "the recorded pid", 14: "the old pid"}
