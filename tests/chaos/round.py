"""One round: a running trainer, a restart, a fault at a point of it, the recovery, and what is to be true then."""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
import time
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos import claims, decoys, excuses, eyes, faults, invariants
from tests.chaos.choices import Choice
from tests.chaos.courses import COURSES
from tests.chaos.decoys import Decoy
from tests.chaos.eyes import Sampler, Sight
from tests.chaos.faults import NO_VICTIM
from tests.chaos.ground import Ground
from tests.chaos.invariants import Broken
from tests.chaos.points import Watch
from tests.chaos.scene import Scene, within
from tests.lab.lab import Lab

RESTART = ("--profile-interval", "60")
REACH, SETTLE, ANSWERS, LEAVES = 40.0, 60.0, 120.0, 5.0  # seconds; the last: a process that took a signal
MISSED = "point not reached"


@dataclass
class Result:
    """What a round came to. `first`: how the first run ended, by its exit status. `given`: whose pids strangers had."""

    choice: Choice
    struck: str = MISSED
    first: str = ""
    attach: int | None = None
    resume: int | None = None
    seconds: float = 0.0
    given: list[str] = field(default_factory=list)
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
        self.course = COURSES[choice.course]
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
        ground.set(self.course, old=True)
        if self.choice.before != "hand":
            self._by_deployctl(ground)
        if self.choice.before == "recycled":
            self._ends_by_itself(ground)
        before = len(ground.steps())
        by_hand = self.choice.before != "deployctl"
        self.decoys += decoys.start(ground, with_trainer=by_hand)
        if by_hand:
            ground.until("the old trainer works", lambda: len(ground.steps()) > before)
        [self.old] = ground.sights()
        ground.set(self.course)

    def _by_deployctl(self, ground: Ground) -> None:
        ground.restart()
        for name in (ground.script, "throughput.py"):
            with (ground.home / "train" / name).open("a") as file:
                file.write("# the next release\n")
        ground.old = ground.live()

    def _ends_by_itself(self, ground: Ground) -> None:
        """What deployctl launched is no more, and a stranger has its pid, which the record still names."""
        [launched] = ground.sights()
        launched.send(signal.SIGINT)
        ground.until("it ends", lambda: not launched.alive)
        self._give(ground, {launched.inner: "the recorded pid"})

    def _give(self, ground: Ground, pids: dict[int, str]) -> None:
        given = decoys.give(ground, pids)
        self.decoys += given
        self.result.given += [decoy.name for decoy in given]

    def _strike(self, ground: Ground) -> Scene:
        known = {path.stem for path in ground.journals()}
        controller = ground.start("restart", ground.place.name, *RESTART)
        scene = Scene(ground, self.choice, controller, Watch(ground, controller, known))
        if scene.watch.reach(self.choice.point, REACH, lambda: faults.prepare(scene)):
            time.sleep(self.choice.delay)
            self.result.struck = faults.strike(scene)
        return scene

    def _settle(self, scene: Scene) -> None:
        """Waits until nothing of deployctl is at work, and makes the world whole; then pids that are free go to strangers."""
        if self.choice.fault == "stop-container":
            faults.mend(scene)  # so that the controller's end does not hang on it
        for who, process in (("the first restart", scene.controller), ("the second restart", scene.second), ("cancel", scene.person)):
            if process is not None:
                self._ended(who, process)
        first = scene.controller.returncode
        self.result.first = "killed" if first == claims.KILLED else str(first)
        for journal in scene.ground.journals():
            for worker in eyes.wait_until_gone((f"of train (run {journal.stem})",), "minder", SETTLE):
                self._note([Broken("hung", f"still at work after {SETTLE:.0f} s: {' '.join(worker.argv)}")])
        if self.choice.fault != "stop-container":
            faults.mend(scene)
        self._quiet(scene)
        if self.choice.fault == "stop-container" and scene.hit:
            self._undisturbed(scene.ground, may_be_dead=True)
            self.decoys = decoys.start(scene.ground, with_trainer=False)
        self._give(scene.ground, decoys.on_record(scene.ground, scene.run, self.old))

    def _ended(self, who: str, process: subprocess.Popen[bytes], seconds: float = SETTLE) -> str:
        """Waits for a deployctl, which is killed at the deadline; its last lines."""
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            self._note([Broken("hung", f"{who} did not end within {seconds:.0f} s")])
        self.result.notes.append(f"--- {who}: {process.returncode}\n{out.decode()}\n{err.decode()}")
        if "Traceback" in err.decode():
            self._note([Broken("traceback", f"{who}: {err.decode().splitlines()[-1]}")])
        return " / ".join((err or out).decode().strip().splitlines()[-3:])

    def _quiet(self, scene: Scene) -> None:
        """Waits for a process that took a signal and that nobody waits for any more."""
        signalled: set[int] = set()
        for event in scene.events:
            signalled = set(event["pids"]) if event["what"] == "rung" else set() if event["what"] == "stopped" else signalled
        within(LEAVES, lambda: not any(sight.inner in signalled for sight in scene.ground.sights()))

    def _look(self, scene: Scene) -> None:
        """What is there and what is said before anything is recovered."""
        ground, world = scene.ground, claims.look(scene.ground, self.old)
        self._note(invariants.lock_is_free(ground, "before the recovery"))
        if world.runs == "several":
            self._note([Broken("trainers", f"before the recovery: {world}")])
        if scene.run:
            self._claims(scene, world)
        self._say(ground, "status", ground.place.name, allowed={0})
        if scene.run:
            self.result.attach = self._say(ground, "attach", scene.run, "--on", ground.place.name)
            self._note(claims.attach_is_true(ground, scene.run, self.result.attach, world))

    def _claims(self, scene: Scene, world: claims.World) -> None:
        ground, status = scene.ground, scene.controller.returncode

        def excused(said: claims.Event) -> bool:
            return excuses.ended_by_the_round(scene, said)

        end = claims.newest_end(ground)
        if end is not None and end["run"] == scene.run:
            self._note(claims.end_is_true(world, end, excused))
        if scene.said("cutover") and claims.end_of(ground, scene.run) is None and not excuses.needs_no_end(scene):
            self._note([Broken("end", f"the run has none; {world}")])
        alone = scene.second is None or scene.second.returncode == claims.KILLED
        if alone and not (status == claims.KILLED and self.choice.fault in ("kill-controller", "second-waits")):
            self._note(claims.restart_is_true(ground, scene.run, status, world, excused, excuses.blind(scene)))
        if scene.second is not None:
            self._note(claims.later_is_true(world, scene.second.returncode, "the second restart"))
        if scene.person is not None:
            self._note(claims.cancel_is_true(ground, scene.run, scene.person.returncode))
        if status == 130:
            self._note(invariants.nothing_is_staged(ground))

    def _recover(self, scene: Scene) -> None:
        ground = scene.ground
        ground.set(COURSES["well"])
        if self.choice.recovery == "resume" and scene.run:
            had, before = claims.end_of(ground, scene.run), claims.look(ground, self.old)
            self.result.resume = self._say(ground, "resume", scene.run, "--on", ground.place.name)
            self._note(claims.resume_is_true(ground, scene.run, had, self.result.resume, before, self.old))
            self._note(invariants.one_release(ground, "after the resume"))
        self._say(ground, "restart", ground.place.name, *RESTART, allowed={0})

    def _say(self, ground: Ground, *words: str, allowed: set[int] | None = None) -> int:
        process = ground.start(*words)
        last = self._ended(f"`{' '.join(words)}`", process, ANSWERS)
        if allowed and process.returncode not in allowed:
            self._note([Broken("recovery", f"`{words[0]}` ended with {process.returncode}: {last}")])
        return process.returncode

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
