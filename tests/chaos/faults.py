"""The faults. Each is done at once, to whom `victims` finds, and says what came of it; `mend` takes back what would hinder the recovery."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.chaos import disks, victims
from tests.chaos.eyes import Sight
from tests.chaos.invariants import FLAG
from tests.chaos.scene import Controller, Scene, within

NO_VICTIM = "no victim"
ROLLBACK = 6.0  # seconds in which a rollback has launched and checked the old program
LIFE = 5.0  # seconds until a job that was killed is begun anew
LIVES = 3
HEARD = 10.0  # seconds in which a second deployctl, or a person's wish, has come to the target
Find = Callable[[Scene], Sight | None]


def prepare(scene: Scene) -> None:
    """Looks for the victim early; a minder is a new one after each launch."""
    find = VICTIMS.get(scene.choice.fault)
    if find is not None and scene.victim is None and find is not victims.minder:
        scene.victim = find(scene)


def strike(scene: Scene) -> str:
    """Does the fault of the round: what was hit, or NO_VICTIM."""
    scene.struck_at = time.time()
    struck = STRIKES[scene.choice.fault](scene)
    scene.hit = struck != NO_VICTIM
    return struck


def mend(scene: Scene) -> None:
    """Makes the world whole again."""
    for act in scene.mend:
        act()


def _victim(scene: Scene) -> Sight | None:
    return scene.victim or VICTIMS[scene.choice.fault](scene)


def kill(scene: Scene) -> str:
    """SIGKILL."""
    victim = _victim(scene)
    return f"killed {victim.inner}" if victim is not None and victim.send(signal.SIGKILL) else NO_VICTIM


def freeze(scene: Scene) -> str:
    """SIGSTOP, and SIGCONT after a while."""
    victim = _victim(scene)
    if victim is None or not victim.send(signal.SIGSTOP):
        return NO_VICTIM
    time.sleep(scene.choice.seconds)
    victim.send(signal.SIGCONT)
    return f"froze {victim.inner} for {scene.choice.seconds:.1f} s"


def interrupt(scene: Scene) -> str:
    """What a person, a service manager or a terminal that is closed sends, once or twice."""
    victim, choice = _victim(scene), scene.choice
    first, *more = (signal.Signals[f"SIG{name}"] for name in choice.signals)
    if victim is None or not victim.send(first):
        return NO_VICTIM
    for number in more:
        time.sleep(choice.gap)
        victim.send(number)
    return f"sent {' and '.join(choice.signals)}"


def kill_job_thrice(scene: Scene) -> str:
    """As often as it is begun anew."""
    killed: list[Sight] = []
    while len(killed) < LIVES and (life := _life(scene, killed)) is not None:
        if life.send(signal.SIGKILL):
            killed.append(life)
    return f"killed {' and '.join(str(seen.inner) for seen in killed)}" if killed else NO_VICTIM


def _life(scene: Scene, killed: list[Sight]) -> Sight | None:
    """The job, as far as it was not killed yet; after a kill it is waited for, unless nobody will begin it anew."""
    until = time.monotonic() + (LIFE if killed else 0.0)
    while True:
        found = victims.job(scene)
        if found is not None and found not in killed:
            return found
        if time.monotonic() >= until or scene.controller.poll() is not None:
            return None
        time.sleep(0.005)


def kill_agent(scene: Scene) -> str:
    """Session and job, as the end of a container's memory may: nobody is left who begins the job anew."""
    found = [seen for seen in (victims.session(scene), victims.job(scene)) if seen is not None]
    killed = [str(seen.inner) for seen in found if seen.send(signal.SIGKILL)]
    return f"killed {' and '.join(killed)}" if killed else NO_VICTIM


def kill_new(scene: Scene) -> str:
    """The program that was launched: its check fails. In half of the rounds what the rollback brings as well, so that this fails too."""
    killed: list[Sight] = []

    def end(found: list[Sight]) -> None:
        for seen in found:
            if seen.send(signal.SIGKILL):
                killed.append(seen)
                scene.kills.append(time.time())

    end([seen for seen in scene.ground.sights() if FLAG in seen.argv])
    until = time.monotonic() + (ROLLBACK if killed and scene.choice.variant else 0.0)
    while time.monotonic() < until:
        end(scene.ground.sights())
        time.sleep(0.02)
    return f"killed {' and '.join(str(seen.inner) for seen in killed)}" if killed else NO_VICTIM


def cancel(scene: Scene) -> str:
    """A person takes the run back; the job is held until the wish is there, so that it is heard at the point and not a second later.

    In half of the rounds the job is killed as soon as it has heard.
    """
    ground = scene.ground
    wish = ground.path(f"{ground.runs}/{scene.run}.cancel")
    with _held(_victim(scene)):
        person = scene.person = ground.start("cancel", scene.run, "--on", ground.place.name)
        within(HEARD, lambda: wish.exists() or person.poll() is not None)
        wished = wish.exists()
    if not wished:
        return NO_VICTIM
    if scene.choice.variant and within(LIFE, lambda: scene.said("cancelled", "end")) and (heard := victims.job(scene)) is not None:
        return f"cancelled, and killed {heard.inner}" if heard.send(signal.SIGKILL) else "cancelled"
    return "cancelled"


def stop_container(scene: Scene) -> str:
    """pct stop, and later pct start."""
    ground = scene.ground
    scene.mend.append(lambda: ground.the_lab.start(ground.ct))
    ground.the_lab.stop(ground.ct)
    return "stopped"


def freeze_container(scene: Scene) -> str:
    """As a snapshot does."""
    ground = scene.ground
    ground.the_lab.freeze(ground.ct)
    try:
        time.sleep(scene.choice.seconds)
    finally:
        ground.the_lab.thaw(ground.ct)
    return f"frozen for {scene.choice.seconds:.1f} s"


def lock_container(scene: Scene) -> str:
    """As a backup does for its time: what has begun may go on, what has not waits."""
    ground = scene.ground
    with ground.the_lab.config(ground.ct, lock="backup"):
        time.sleep(scene.choice.seconds)
    return f"locked for {scene.choice.seconds:.1f} s"


def _fill(scene: Scene, big: Path) -> str:
    scene.mend.append(lambda: disks.free(big))
    return f"filled with {disks.fill(big) >> 10} KiB"


def fill_target_disk(scene: Scene) -> str:
    """The file system of the destination, or that of the state directory."""
    return _fill(scene, scene.ground.path(scene.ground.filler))


def keep_disk_full(scene: Scene) -> str:
    """The same, and somebody else takes each block that is given up."""
    big = scene.ground.path(scene.ground.filler)
    scene.mend += [disks.keep_full(big), lambda: disks.free(big)]
    return "kept full"


def fill_host_staging(scene: Scene) -> str:
    """/tmp of the host, as this run's sshd has it."""
    return _fill(scene, scene.ground.host_tmp / "fill")


def second_waits(scene: Scene) -> str:
    """A second restart waits for the lock; then the first or the second deployctl is killed. The run is held until the second one waits."""
    ground, known = scene.ground, set(scene.ground.journals())

    def waits() -> bool:
        return any(b'"what":"busy"' in path.read_bytes().replace(b" ", b"") for path in set(ground.journals()) - known)

    with _held(victims.job(scene) or victims.controller(scene)):
        second = scene.second = ground.start("restart", ground.place.name, "--wait", "60s", "--profile-interval", "60")
        within(HEARD, lambda: waits() or second.poll() is not None)
        name, victim = (("first", scene.controller), ("second", second))[scene.choice.variant]
        return f"the second waited, killed the {name}" if waits() and _end(victim) else NO_VICTIM


@contextmanager
def _held(worker: Sight | None) -> Iterator[None]:
    """Stops a process for a while, so that what takes a second to come does so at the point all the same."""
    held = worker is not None and worker.send(signal.SIGSTOP)
    try:
        yield
    finally:
        if worker is not None and held:
            worker.send(signal.SIGCONT)


def _end(process: Controller) -> bool:
    if process.poll() is not None:
        return False
    process.kill()
    return True


VICTIMS: dict[str, Find] = {
    "kill-controller": victims.controller,
    "freeze-controller": victims.controller,
    "interrupt": victims.controller,
    "kill-ssh-session": victims.ssh_session,
    "freeze-ssh-session": victims.ssh_session,
    "kill-session": victims.session,
    "kill-job": victims.job,
    "cancel": victims.job,
    "kill-minder": victims.minder,
}
STRIKES: dict[str, Callable[[Scene], str]] = {
    "kill-controller": kill,
    "freeze-controller": freeze,
    "interrupt": interrupt,
    "kill-ssh-session": kill,
    "freeze-ssh-session": freeze,
    "kill-session": kill,
    "kill-job": kill,
    "kill-job-thrice": kill_job_thrice,
    "kill-agent": kill_agent,
    "kill-minder": kill,
    "kill-new": kill_new,
    "cancel": cancel,
    "stop-container": stop_container,
    "freeze-container": freeze_container,
    "lock-container": lock_container,
    "fill-target-disk": fill_target_disk,
    "keep-disk-full": keep_disk_full,
    "fill-host-staging": fill_host_staging,
    "second-waits": second_waits,
}
