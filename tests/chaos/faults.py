"""The faults. Each has its victim found, is done at once, and says what came of it; `mend` takes back what would hinder the recovery."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos import eyes
from tests.chaos.choices import Choice
from tests.chaos.eyes import Sight
from tests.chaos.ground import Ground
from tests.chaos.invariants import FLAG
from tests.chaos.points import Watch

NO_VICTIM = "no victim"
ROLLBACK = 6.0  # seconds in which a rollback has launched and checked the old program
Controller = subprocess.Popen[bytes]


@dataclass
class Scene:
    """A run under way."""

    ground: Ground
    choice: Choice
    controller: Controller
    watch: Watch
    victim: Sight | None = None  # found before the point is reached, so that the fault comes at once
    second: Controller | None = None
    mend: list[Callable[[], object]] = field(default_factory=list)

    @property
    def run(self) -> str:
        """The id of the first run; "" before its first word."""
        return self.watch.run


def prepare(scene: Scene) -> None:
    """Looks for the victim early; a minder is a new one after each launch."""
    find = VICTIMS.get(scene.choice.fault)
    if find is not None and scene.victim is None and find is not minder:
        scene.victim = find(scene)


def strike(scene: Scene) -> str:
    """Does the fault of the round: what was hit, or NO_VICTIM."""
    return STRIKES[scene.choice.fault](scene)


def mend(scene: Scene) -> None:
    """Makes the world whole again."""
    for act in scene.mend:
        act()


# Who they are


def controller(scene: Scene) -> Sight | None:
    """The first deployctl."""
    return eyes.sight(scene.controller.pid) if scene.controller.poll() is None else None


def ssh_session(scene: Scene) -> Sight | None:
    """The process of the site's sshd that serves its one connection."""
    found = [seen for pid in eyes.children(scene.ground.server) if (seen := eyes.sight(pid))]
    return found[0] if found else None


def session(scene: Scene) -> Sight | None:
    """The agent's session; before it knows its run it is found below its sshd."""
    named = eyes.with_argv(f"deployctl: session of train (run {scene.run})")
    if named:
        return named[0]
    below = [seen for pid in eyes.descendants(scene.ground.server) if (seen := eyes.sight(pid))]
    return next((seen for seen in below if "deployctl: session" in " ".join(seen.argv)), None)


def job(scene: Scene) -> Sight | None:
    """The job of the run."""
    return next(iter(eyes.with_argv(f"deployctl: job of train (run {scene.run})")), None)


def minder(scene: Scene) -> Sight | None:
    """The minder of the run that is under way, else the one of the run before."""
    init = scene.ground.init()
    own = eyes.with_argv(f"deployctl: minder of train (run {scene.run})")
    parents = {seen.pid for trainer in scene.ground.sights() if (seen := _parent(trainer))}
    others = [seen for seen in eyes.with_argv("deployctl: minder of train") if seen.pid in parents]
    return next(iter(own or others), None) if init else None


def _parent(seen: Sight) -> Sight | None:
    with suppress(OSError, IndexError, ValueError):
        return eyes.sight(int(Path(f"/proc/{seen.pid}/stat").read_text().rpartition(")")[2].split()[1]))
    return None


# What is done to them


def _kill(find: Callable[[Scene], Sight | None]) -> Callable[[Scene], str]:
    def act(scene: Scene) -> str:
        victim = scene.victim or find(scene)
        if victim is None or not victim.send(signal.SIGKILL):
            return NO_VICTIM
        return f"killed {victim.inner}"

    return act


def _freeze(find: Callable[[Scene], Sight | None]) -> Callable[[Scene], str]:
    def act(scene: Scene) -> str:
        victim = scene.victim or find(scene)
        if victim is None or not victim.send(signal.SIGSTOP):
            return NO_VICTIM
        time.sleep(scene.choice.seconds)
        victim.send(signal.SIGCONT)
        return f"froze {victim.inner} for {scene.choice.seconds:.1f} s"

    return act


def kill_agent(scene: Scene) -> str:
    """Session and job, as the end of a container's memory may: nobody is left who begins the job anew."""
    victims = [seen for seen in (session(scene), job(scene)) if seen is not None]
    killed = [str(seen.inner) for seen in victims if seen.send(signal.SIGKILL)]
    return f"killed {' and '.join(killed)}" if killed else NO_VICTIM


def kill_new(scene: Scene) -> str:
    """The program that was launched: its check fails. In half of the rounds what the rollback brings as well, so that this fails too."""
    victims = [seen for seen in scene.ground.sights() if FLAG in seen.argv]
    killed = [str(seen.inner) for seen in victims if seen.send(signal.SIGKILL)]
    until = time.monotonic() + (ROLLBACK if killed and scene.choice.variant else 0.0)
    while time.monotonic() < until:
        killed += [str(seen.inner) for seen in scene.ground.sights() if seen.send(signal.SIGKILL)]
        time.sleep(0.02)
    return f"killed {' and '.join(killed)}" if killed else NO_VICTIM


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
    scene.mend.append(lambda: os.truncate(big, 0))
    written = 0
    with big.open("ab", buffering=0) as stream, suppress(OSError):
        while True:
            written += stream.write(bytes(4096))
    return f"filled with {written >> 10} KiB"


def fill_target_disk(scene: Scene) -> str:
    """The file system of the destination, or that of the state directory."""
    ground = scene.ground
    return _fill(scene, ground.path(ground.filler))


def fill_host_staging(scene: Scene) -> str:
    """/tmp of the host, as this run's sshd has it."""
    return _fill(scene, scene.ground.host_tmp / "fill")


def second_waits(scene: Scene) -> str:
    """A second restart waits for the lock; then the first or the second deployctl is killed."""
    ground = scene.ground
    scene.second = ground.start("restart", ground.place.name, "--wait", "60s", "--profile-interval", "60")
    time.sleep(scene.choice.seconds / 3)
    victim = (scene.controller, scene.second)[scene.choice.variant]
    if victim.poll() is not None:
        return "a second one waited; the victim had ended"
    victim.kill()
    return f"killed the {('first', 'second')[scene.choice.variant]}"


VICTIMS: dict[str, Callable[[Scene], Sight | None]] = {
    "kill-controller": controller,
    "freeze-controller": controller,
    "kill-ssh-session": ssh_session,
    "freeze-ssh-session": ssh_session,
    "kill-session": session,
    "kill-job": job,
    "kill-minder": minder,
}
STRIKES: dict[str, Callable[[Scene], str]] = {
    **{name: (_kill if name.startswith("kill") else _freeze)(find) for name, find in VICTIMS.items()},
    "kill-agent": kill_agent,
    "kill-new": kill_new,
    "stop-container": stop_container,
    "freeze-container": freeze_container,
    "lock-container": lock_container,
    "fill-target-disk": fill_target_disk,
    "fill-host-staging": fill_host_staging,
    "second-waits": second_waits,
}
