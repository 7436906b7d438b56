"""One round: a running trainer, a restart, a fault at a point of it, the recovery, and what is to be true then."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos import claims, decoys, eyes, faults, invariants
from tests.chaos.choices import Choice
from tests.chaos.decoys import Decoy
from tests.chaos.eyes import Sampler, Sight
from tests.chaos.faults import NO_VICTIM, Scene
from tests.chaos.ground import Ground
from tests.chaos.invariants import Broken
from tests.chaos.points import Watch
from tests.lab.lab import Lab

RESTART = ("--profile-interval", "60")
REACH, SETTLE = 40.0, 60.0  # seconds
MISSED = "point not reached"


@dataclass
class Result:
    """What a round came to. `first`: how the first run ended, by its exit status."""

    choice: Choice
    struck: str = MISSED
    first: str = ""
    attach: int | None = None
    resume: int | None = None
    seconds: float = 0.0
    broken: list[Broken] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    kept: Path | None = None

    @property
    def hit(self) -> bool:
        """Whether the fault was done to somebody."""
        return self.struck not in (MISSED, NO_VICTIM)


class Round:
    """`play` it once."""

    def __init__(self, choice: Choice, lab: Lab, target: str, keep: Path) -> None:
        self.choice, self.lab, self.target, self.keep = choice, lab, target, keep
        self.result = Result(choice)
        self.decoys: list[Decoy] = []
        self.old: Sight | None = None

    def play(self) -> Result:
        """Never raises but for an interrupt: a fault of the driver is a broken invariant 'driver'."""
        began = time.monotonic()
        home = Path(tempfile.mkdtemp(prefix="chaos-"))
        try:
            self._in(Ground(home, self.lab, self.target, self.choice.disk, self.choice.via))
        except Exception:
            self._note([Broken("driver", traceback.format_exc())])
        finally:
            shutil.rmtree(home, ignore_errors=True)
        self.result.seconds = time.monotonic() - began
        return self.result

    def _in(self, ground: Ground) -> None:
        sampler = Sampler(ground.script)
        try:
            self._old(ground)
            sampler.start()
            scene = self._strike(ground)
            self._settle(scene)
            self._look(scene)
            self._recover(scene)
            self._final(ground)
        except Exception:
            self._note([Broken("driver", traceback.format_exc())])
        finally:
            if sampler.is_alive():
                sampler.close()
            self._note([Broken("double", str(seen)) for seen in sampler.doubles[:1]])
            self._note([Broken("driver", trouble) for trouble in sampler.troubles])
            if self.result.broken:
                self._save(ground)
            decoys.end(self.decoys)
            ground.end()

    def _note(self, found: Iterable[Broken]) -> None:
        self.result.broken.extend(found)

    def _old(self, ground: Ground) -> None:
        """The trainer that runs before, started by hand or by deployctl, with its bystanders."""
        by_hand = self.choice.before == "hand"
        self.decoys = decoys.start(ground, with_trainer=by_hand)
        if not by_hand:
            ground.restart()
            for name in (ground.script, "throughput.py"):
                with (ground.home / "train" / name).open("a") as file:
                    file.write("# the next release\n")
            ground.old = ground.live()
        ground.until("the old trainer works", ground.steps)
        [self.old] = ground.sights()

    def _strike(self, ground: Ground) -> Scene:
        known = {path.stem for path in ground.journals()}
        controller = ground.start("restart", ground.place.name, *RESTART)
        scene = Scene(ground, self.choice, controller, Watch(ground, controller, known))
        if scene.watch.reach(self.choice.point, REACH, lambda: faults.prepare(scene)):
            time.sleep(self.choice.delay)
            self.result.struck = faults.strike(scene)
        return scene

    def _settle(self, scene: Scene) -> None:
        """Waits until nothing of deployctl is at work, and makes the world whole."""
        if self.choice.fault == "stop-container":
            faults.mend(scene)  # so that the controller's end does not hang on it
        for process in (scene.controller, scene.second):
            if process is not None:
                self._ended(process, scene)
        for journal in scene.ground.journals():
            for worker in eyes.wait_until_gone((f"of train (run {journal.stem})",), "minder", SETTLE):
                self._note([Broken("hung", f"still at work after {SETTLE:.0f} s: {' '.join(worker.argv)}")])
        if self.choice.fault != "stop-container":
            faults.mend(scene)
        self._quiet(scene)

    def _ended(self, process: subprocess.Popen[bytes], scene: Scene) -> None:
        who = "first" if process is scene.controller else "second"
        try:
            out, err = process.communicate(timeout=SETTLE)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            self._note([Broken("hung", f"the {who} deployctl did not end within {SETTLE:.0f} s")])
        self.result.notes.append(f"--- {who} restart: {process.returncode}\n{out.decode()}\n{err.decode()}")
        if who == "first":
            self.result.first = "killed" if process.returncode == -9 else str(process.returncode)
        if "Traceback" in err.decode():
            self._note([Broken("traceback", f"{who}: {err.decode().splitlines()[-1]}")])

    def _quiet(self, scene: Scene) -> None:
        """Waits for a process that took a signal and that nobody waits for any more."""
        events = claims.events_of(scene.ground, scene.run)
        words = [event["what"] for event in events]
        if "rung" in words and "stopped" not in words and self.old is not None:
            ends = time.monotonic() + 5
            while self.old.alive and time.monotonic() < ends:
                time.sleep(0.02)

    def _look(self, scene: Scene) -> None:
        """What is there and what is said before anything is recovered."""
        ground = scene.ground
        self._note(invariants.lock_is_free(ground, "before the recovery"))
        if len(seen := ground.sights()) > 1:
            self._note([Broken("trainers", f"before the recovery {len(seen)} run")])
        end = claims.newest_end(ground)
        untrue = [*claims.end_is_true(ground, end, self.old)] if end is not None and end["run"] == scene.run else []
        if scene.second is None:
            untrue += claims.status_is_true(ground, scene.controller.returncode, "the first restart")
        if untrue and not self._excused(scene):
            self._note(untrue)
        self._say(ground, "status", ground.place.name, allowed={0})
        if scene.run:
            self.result.attach = self._say(ground, "attach", scene.run, "--on", ground.place.name)
            if self.choice.fault != "stop-container" or end is None:
                self._note(claims.attach_is_true(ground, scene.run, self.result.attach))

    def _excused(self, scene: Scene) -> bool:
        """Whether what runs now says nothing of what was said: the round has ended it, or its own disk has, after the last word.

        Asked after the look: a trainer may end between the two.
        """
        fault = self.choice.fault
        after = fault == "kill-new" and self.result.first in ("0", "killed")
        return fault == "stop-container" or after or invariants.died_of_its_disk(scene.ground, scene.run, fault == "fill-target-disk")

    def _recover(self, scene: Scene) -> None:
        ground = scene.ground
        if self.choice.fault == "stop-container":
            self._undisturbed(ground, may_be_dead=True)
            self.decoys = decoys.start(ground, with_trainer=False)
        if self.choice.recovery == "resume" and scene.run:
            self.result.resume = self._say(ground, "resume", scene.run, "--on", ground.place.name)
            if self.choice.fault != "stop-container" or self.result.resume == 0:
                self._note(claims.status_is_true(ground, self.result.resume, "resume"))
            self._note(invariants.one_release(ground, "after the resume"))
        self._say(ground, "restart", ground.place.name, *RESTART, allowed={0})

    def _say(self, ground: Ground, *words: str, allowed: set[int] | None = None) -> int:
        done = ground.run(*words, status=None)
        self.result.notes.append(f"--- {' '.join(words)}: {done.returncode}\n{done.stdout}\n{done.stderr}")
        if allowed and done.returncode not in allowed:
            last = (done.stderr or done.stdout).strip().splitlines()[-3:]
            self._note([Broken("recovery", f"`{words[0]}` ended with {done.returncode}: {' / '.join(last)}")])
        if "Traceback" in done.stderr:
            self._note([Broken("traceback", f"`{words[0]}`: {done.stderr.strip().splitlines()[-1]}")])
        return done.returncode

    def _final(self, ground: Ground) -> None:
        self._note(invariants.one_new_trainer(ground, "after the recovery"))
        self._note(invariants.one_release(ground, "after the recovery", ground.wanted()))
        self._note(invariants.lock_is_free(ground, "after the recovery"))
        self._note(invariants.record_is_true(ground))
        self._note(invariants.nothing_is_staged(ground))
        self._note(invariants.host_is_clean(ground))
        # in the others a save fails without anybody's fault
        if self.choice.disk != "directory" and self.choice.fault not in ("stop-container", "kill-new"):
            self._note(invariants.saves_are_whole(ground))
        self._undisturbed(ground, may_be_dead=False)

    def _undisturbed(self, ground: Ground, may_be_dead: bool) -> None:
        self._note([Broken("decoys", wrong) for wrong in decoys.disturbed(ground, self.decoys, may_be_dead)])

    def _save(self, ground: Ground) -> None:
        """Keeps what tells how it came to this."""
        kept = self.result.kept = self.keep / f"seed{self.choice.seed}-round{self.choice.number}"
        kept.mkdir(parents=True, exist_ok=True)
        told = [str(self.choice), f"struck: {self.result.struck}", *(f"{broken.name}: {broken.detail}" for broken in self.result.broken)]
        (kept / "told").write_text("\n".join([*told, *self.result.notes]))
        sources = {
            "journal": ground.home / "home" / "state" / "deployctl" / "runs",
            "target": ground.path(f"{ground.state}/workloads/train"),
        }
        for name, source in sources.items():
            if source.exists():
                shutil.copytree(source, kept / name, dirs_exist_ok=True)
        if (log := ground.path(ground.log)).exists():
            shutil.copy(log, kept / "train.log")
