"""What a round itself has done, so that a word of deployctl that was true when it was said is no more. docs/chaos.md names each."""

from __future__ import annotations

from tests.chaos import claims, invariants
from tests.chaos.claims import Event
from tests.chaos.scene import Scene


def ended_by_the_round(scene: Scene, said: Event) -> bool:
    """Whether what the word says runs has ended after it, by the fault. Asked after the look: a trainer may end between the two."""
    fault = scene.choice.fault
    if not scene.hit:
        return False
    if fault == "stop-container":
        return bool(said["t"] <= scene.struck_at) or said["outcome"] in claims.UNTOUCHED
    if fault == "kill-new":
        return _found_well(scene) <= max(scene.kills)
    return scene.choice.disk == "directory" and invariants.died_of_its_disk(scene.ground, scene.run)


def _found_well(scene: Scene) -> float:
    """When a check passed last: what was killed after that was well as far as anybody could know."""
    return max((float(event["t"]) for event in scene.events if event["what"] == "checked"), default=float("inf"))


def blind(scene: Scene) -> bool:
    """Whether the job was killed together with the session by which its controller could have seen that."""
    return scene.hit and scene.choice.fault == "kill-agent"


def needs_no_end(scene: Scene) -> bool:
    """Whether the fault left nobody who could bring the run to its end: the job was killed, and nobody begins it anew."""
    fault, lingered = scene.choice.fault, any(event["what"] == "lingering" and event["detail"] != "cancelled" for event in scene.events)
    alone = fault in ("kill-agent", "kill-job-thrice", "stop-container") or (fault in ("kill-job", "cancel") and lingered)
    return scene.hit and alone
