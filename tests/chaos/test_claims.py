"""What deployctl may say of which world: a word that is not so is a broken invariant, whichever word it is."""

from __future__ import annotations

import pytest

from tests.chaos import claims
from tests.chaos.claims import PROMISES, World
from tests.chaos.conftest import RUN, Plant
from tests.chaos.ground import Ground

WORLDS = [World(runs, files) for runs in ("nothing", "old", "again", "new", "another", "several") for files in ("old", "new", "torn")]
TRUE = {
    "running": ["new/new"],
    "refused": ["old/old"],
    "rolled-back": ["old/old", "again/old"],
    "cancelled": ["old/old", "again/old"],
    "unreachable": ["old/old"],
    "not-stopped": ["old/old"],
    "lingering": ["nothing/old", "old/old"],
    "down": ["nothing/old", "nothing/new", "nothing/torn"],
    "busy": ["old/old"],
    "interrupted": ["old/old"],
}


def never(_: claims.Event) -> bool:
    return False


@pytest.mark.parametrize("outcome", TRUE)
def test_an_outcome_is_true_in_its_own_worlds_alone(outcome: str) -> None:
    end = {"outcome": outcome, "status": PROMISES[outcome].status}
    assert [f"{one.runs}/{one.files}" for one in WORLDS if not [*claims.end_is_true(one, end, never)]] == TRUE[outcome]


@pytest.mark.parametrize("outcome", ["done", "unchanged", "runs-already", "stopped"])
def test_a_restart_never_ends_in_the_words_of_other_playbooks(outcome: str) -> None:
    assert all([*claims.end_is_true(world, {"outcome": outcome, "status": 0}, never)] for world in WORLDS)


@pytest.mark.parametrize("outcome", PROMISES)
def test_an_outcome_has_its_own_exit_status(outcome: str) -> None:
    wrong = {"outcome": outcome, "status": PROMISES[outcome].status + 1}
    assert all([*claims.end_is_true(world, wrong, never)] for world in WORLDS)


def test_what_the_round_itself_has_ended_excuses_the_process_and_not_the_files() -> None:
    end = {"outcome": "running", "status": 0}
    assert not [*claims.end_is_true(World("nothing", "new"), end, lambda _: True)]
    assert [*claims.end_is_true(World("nothing", "torn"), end, lambda _: True)]
    assert [*claims.end_is_true(World("old", "new"), end, lambda _: True)]


@pytest.mark.lab
@pytest.mark.parametrize("status, outcome", [(130, "interrupted"), (7, "detached")])
@pytest.mark.parametrize("began", [True, False])
def test_only_before_the_cut_over_a_run_is_interrupted_and_only_in_it_detached(
    ground: Ground, plant: Plant, status: int, outcome: str, began: bool
) -> None:
    plant(*([{"what": "cutover", "job_pid": 7}, {"what": "end", "status": 1, "outcome": "refused"}] if began else [{"what": "staged"}]))
    plant({"what": "end", "status": status, "outcome": outcome, "phase": "report"}, here=True)
    broken = [*claims.restart_is_true(ground, RUN, status, World("old", "old"), never)]
    assert bool(broken) == (began != (status == 7))


@pytest.mark.lab
def test_a_job_that_has_no_end_does_not_go_on(ground: Ground, plant: Plant) -> None:
    plant({"what": "cutover", "job_pid": 7})
    plant({"what": "end", "status": 7, "outcome": "detached", "phase": "report"}, here=True)
    assert [*claims.restart_is_true(ground, RUN, 7, World("old", "old"), never)]
    assert not [*claims.restart_is_true(ground, RUN, 7, World("old", "old"), never, blind=True)]


@pytest.mark.lab
def test_a_controller_ends_with_the_status_of_the_end_that_it_has_told(ground: Ground, plant: Plant) -> None:
    world = World("old", "old")
    assert [*claims.restart_is_true(ground, RUN, 1, world, never)]
    plant({"what": "end", "status": 1, "outcome": "refused", "phase": "report"}, here=True)
    assert not [*claims.restart_is_true(ground, RUN, 1, world, never)]
    assert [*claims.restart_is_true(ground, RUN, -15, world, never)]


@pytest.mark.lab
def test_a_controller_that_left_a_lingering_job_is_right_however_that_job_goes_on(ground: Ground, plant: Plant) -> None:
    plant({"what": "end", "status": 4, "outcome": "lingering", "phase": "report"}, here=True)
    assert [*claims.restart_is_true(ground, RUN, 4, World("new", "new"), never)]
    plant({"what": "cutover", "job_pid": 7}, {"what": "stopped"})
    assert not [*claims.restart_is_true(ground, RUN, 4, World("new", "new"), never)]


@pytest.mark.lab
def test_a_resume_that_leaves_the_run_without_an_end_is_a_broken_claim(ground: Ground, plant: Plant) -> None:
    nothing = claims.look(ground, None)
    assert not [*claims.resume_is_true(ground, RUN, None, 1, nothing, None)]
    plant({"what": "cutover", "job_pid": 7})
    assert [*claims.resume_is_true(ground, RUN, None, 1, nothing, None)]


@pytest.mark.lab
@pytest.mark.parametrize("status", [0, 4, 5, 7])
def test_cancel_ends_as_the_run_does(ground: Ground, plant: Plant, status: int) -> None:
    plant({"what": "cutover", "job_pid": 7})
    assert bool([*claims.cancel_is_true(ground, RUN, status)]) == (status in (0, 7)), "4 and 5 are said of a run without an end too"
    plant({"what": "end", "status": {0: 1}.get(status, status), "outcome": "cancelled"})
    assert not [*claims.cancel_is_true(ground, RUN, status)]
    plant({"what": "end", "status": 6, "outcome": "busy"})
    assert bool([*claims.cancel_is_true(ground, RUN, status)]) == (status != 7)
