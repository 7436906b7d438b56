"""The trainer, run for real: its log, its checkpoints, what INT and TERM do to it."""

from __future__ import annotations

import ast
import hashlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deployctl import demo

SCRIPTS = [Path(demo.__file__).with_name(version) for version in ("train", "old")]
QUICK = ("--step-time", "0.05", "--save-time", "0.1")


class Trainer:
    """A trainer in a directory, its output in a file."""

    def __init__(self, script: Path, directory: Path, flags: tuple[str, ...]) -> None:
        self.log = directory / "out.log"
        argv = [sys.executable, "-u", "-B", str(script), *flags]
        with self.log.open("ab") as log:  # env: whoever started the tests may ignore INT
            self.process = subprocess.Popen(
                ["env", "--default-signal=INT", *argv], cwd=directory, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )

    def says(self, text: str) -> str:
        """Waits for a line that holds the text; the log until now."""
        deadline = time.monotonic() + 20
        while text not in self.log.read_text():
            assert time.monotonic() < deadline, f"no {text!r} in\n{self.log.read_text()}"
            time.sleep(0.01)
        return self.log.read_text()

    def ends(self) -> int:
        """Waits for its end; the status."""
        return self.process.wait(timeout=20)


Start = Callable[..., Trainer]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    trainers: list[Trainer] = []

    def starter(*flags: str, script: Path = SCRIPTS[0]) -> Trainer:
        trainers.append(Trainer(script / "train_dflash_pipeline.py", tmp_path, flags))
        return trainers[-1]

    yield starter
    for trainer in trainers:
        trainer.process.kill()
        trainer.process.wait()


def whole(checkpoint: Path) -> bool:
    data = checkpoint.read_bytes()
    return hashlib.sha256(data[:-64]).hexdigest().encode() == data[-64:]


def steps(log: str) -> list[int]:
    return [int(line.split()[1]) for line in log.splitlines() if line.startswith("step ")]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_it_reads_on_python_3_8(script: Path) -> None:
    for file in script.glob("*.py"):
        ast.parse(file.read_text(), feature_version=(3, 8))


def test_the_first_line_has_its_pid_and_flags(start: Start) -> None:
    trainer = start("--token-budget", "9000", *QUICK, "--steps", "1")
    assert trainer.ends() == 0
    first = trainer.log.read_text().splitlines()[0]
    assert f"version 2 pid {trainer.process.pid} flags --token-budget 9000 --step-time" in first


def test_every_step_has_a_throughput_and_the_last_one_is_saved(start: Start, tmp_path: Path) -> None:
    trainer = start(*QUICK, "--steps", "5")
    assert trainer.ends() == 0
    lines = [line.split() for line in trainer.log.read_text().splitlines() if line.startswith("step ")]
    assert [line[1] for line in lines] == ["1", "2", "3", "4", "5"]
    assert all(float(line[line.index("tokens/s") + 1]) > 0 for line in lines)
    assert whole(tmp_path / "checkpoints/step_000005.pt")


def test_profile_lines_come_with_an_interval_and_not_without(start: Start) -> None:
    without = start(*QUICK, "--steps", "8")
    assert without.ends() == 0
    assert "profile data" not in without.log.read_text()
    start(*QUICK, "--profile-interval", "0.1").says("profile data")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_an_interrupt_saves_a_whole_checkpoint_and_ends_with_0(start: Start, tmp_path: Path, script: Path) -> None:
    trainer = start("--step-time", "0.3", "--save-time", "0.2", script=script)
    trainer.says("step 2 ")
    trainer.process.send_signal(signal.SIGINT)
    assert trainer.ends() == 0
    log = trainer.log.read_text()
    last = steps(log)[-1]
    assert log.splitlines()[-1] == f"saved checkpoints/step_{last:06d}.pt, leaving"
    assert whole(tmp_path / f"checkpoints/step_{last:06d}.pt")
    assert json.loads((tmp_path / "checkpoints/latest.json").read_text())["step"] == last
    assert not list(tmp_path.glob("checkpoints/*.tmp"))


def test_an_interrupted_step_is_finished(start: Start) -> None:
    trainer = start("--step-time", "0.5", "--save-time", "0")
    trainer.says("step 1 ")
    trainer.process.send_signal(signal.SIGINT)
    assert trainer.ends() == 0
    assert steps(trainer.log.read_text().partition("interrupted")[2]) == [2]


def test_the_new_version_goes_on_where_the_old_one_left(start: Start) -> None:
    assert start(*QUICK, "--steps", "4", script=SCRIPTS[1]).ends() == 0
    second = start(*QUICK, "--steps", "6")
    assert second.ends() == 0
    assert steps(second.log.read_text()) == [1, 2, 3, 4, 5, 6]


def test_a_cut_checkpoint_is_passed_over(start: Start, tmp_path: Path) -> None:
    assert start(*QUICK, "--steps", "4", "--checkpoint-every", "2").ends() == 0
    newest = tmp_path / "checkpoints/step_000004.pt"
    newest.write_bytes(newest.read_bytes()[:1000])
    trainer = start(*QUICK, "--steps", "3")
    assert trainer.ends() == 0
    assert "passed over checkpoints/step_000004.pt: not whole\nresumed from checkpoints/step_000002.pt" in trainer.log.read_text()


def test_term_ends_it_at_once_and_saves_nothing(start: Start, tmp_path: Path) -> None:
    trainer = start(*QUICK)
    trainer.says("step 1 ")
    trainer.process.terminate()
    assert trainer.ends() == -signal.SIGTERM
    assert not list(tmp_path.glob("checkpoints/*.pt"))


def test_a_deaf_one_works_on_after_an_interrupt(start: Start) -> None:
    trainer = start(*QUICK, "--ignore-int")
    trainer.says("step 1 ")
    trainer.process.send_signal(signal.SIGINT)
    after = steps(trainer.log.read_text())[-1]
    trainer.says(f"step {after + 5} ")
    assert trainer.process.poll() is None


def test_a_failing_one_leaves_a_traceback_and_a_status(start: Start) -> None:
    trainer = start(*QUICK, "--die-after", "0.2")
    assert trainer.ends() == 1
    assert "RuntimeError: a trial: --die-after 0.2" in trainer.log.read_text()


@pytest.mark.parametrize("flags", [("--token-budget", "0"), ("--profile-interval", "-1"), ("--token-budget", "100"), ("--no-such",)])
def test_wrong_flags_end_with_2(start: Start, flags: tuple[str, ...]) -> None:
    assert start(*flags).ends() == 2
