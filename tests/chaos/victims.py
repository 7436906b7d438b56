"""Who a fault can be done to: each finder gives the living process, or None."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from tests.chaos import eyes
from tests.chaos.eyes import Sight
from tests.chaos.scene import Scene


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
