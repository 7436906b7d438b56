"""A small program that behaves like a training run, so that there is something to restart.

It learns nothing. It takes the flags of a training script, prepares batches in a thread, logs every step with its
throughput, writes checkpoints and goes on from the newest one. SIGINT is Python's own KeyboardInterrupt: it finishes the
step, saves and leaves with status 0. There is no handler for SIGTERM, so TERM ends it at once and nothing is saved.

It writes to stdout and flushes nothing: set PYTHONUNBUFFERED=1 to see the lines as they come.
Standard library only, Python 3.8 and newer.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import queue
import random
import shlex
import signal
import sys
import threading
import time
from pathlib import Path
from typing import IO, NamedTuple

from throughput import Meter, Profile

VERSION = 2
FOLDER = Path("checkpoints")
KEPT = 3  # checkpoints that stay; older ones are removed after a save
BLOCK = bytes(65536)
BLOCKS = 16  # of a checkpoint


class State(NamedTuple):
    """What a checkpoint keeps of a run."""

    step: int
    loss: float
    tokens: int


def whole_number(text: str) -> int:
    """A count of at least 1, for argparse."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def seconds(text: str) -> float:
    """A time of at least 0, for argparse."""
    number = float(text)
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is no time in seconds")
    return number


def flags(words: list[str] | None = None) -> argparse.Namespace:
    """The flags of the command line."""
    parser = argparse.ArgumentParser(description="Something to restart: behaves like a training run, learns nothing.")
    parser.add_argument("--token-budget", type=whole_number, default=49152, metavar="N", help="tokens of a batch (%(default)s)")
    parser.add_argument("--max-seq-len", type=whole_number, default=8192, metavar="N", help="longest sequence (%(default)s)")
    parser.add_argument("--profile-interval", type=seconds, default=0, metavar="S", help="seconds between profile lines (0: none)")
    parser.add_argument("--steps", type=whole_number, default=1000000, metavar="N", help="steps of the whole run (%(default)s)")
    parser.add_argument("--step-time", type=seconds, default=1.0, metavar="S", help="seconds of one step (%(default)s)")
    parser.add_argument("--checkpoint-every", type=whole_number, default=30, metavar="N", help="steps between saves (%(default)s)")
    parser.add_argument("--save-time", "--linger-save", type=seconds, default=1.0, metavar="S", help="seconds of a save (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of batches and losses (%(default)s)")
    trials = parser.add_argument_group("for trials")
    trials.add_argument("--ignore-int", action="store_true", help="ignore SIGINT, as a program started with & does")
    trials.add_argument("--die-after", type=seconds, default=None, metavar="S", help="fail with a traceback after so many seconds")
    options = parser.parse_args(words)
    if options.max_seq_len > options.token_budget:
        parser.error(f"--max-seq-len {options.max_seq_len} does not fit into --token-budget {options.token_budget}")
    return options


def batch_of(options: argparse.Namespace, step: int) -> list[int]:
    """The lengths of the sequences of a step's batch, together no more than the token budget; the same for the same seed."""
    pick = random.Random(f"{options.seed}-{step}")
    lengths: list[int] = []
    room = options.token_budget
    while True:
        length = pick.randint(1, options.max_seq_len)
        if length > room:
            return lengths
        lengths.append(length)
        room -= length


class Feeder(threading.Thread):
    """Prepares the batches of the coming steps while the current one is worked on."""

    def __init__(self, options: argparse.Namespace, first: int) -> None:
        super().__init__(name="feeder", daemon=True)
        self._options = options
        self._first = first
        self._closed = threading.Event()
        self._batches: queue.Queue[list[int]] = queue.Queue(maxsize=4)

    def run(self) -> None:
        """The thread: fills the queue until it is closed."""
        step = self._first
        batch = batch_of(self._options, step)
        while not self._closed.is_set():
            with contextlib.suppress(queue.Full):
                self._batches.put(batch, timeout=0.1)
                step += 1
                batch = batch_of(self._options, step)

    def take(self) -> list[int]:
        """The next batch; waits for it."""
        return self._batches.get()

    def close(self) -> None:
        """Ends the thread and waits until it has ended."""
        self._closed.set()
        self.join()


def save(state: State, duration: float) -> Path:
    """Writes a checkpoint beside its name and renames it there: under its name it is whole, or not there.

    The writing takes `duration` seconds. The last 64 bytes are the SHA-256 of all before.
    """
    path = FOLDER / f"step_{state.step:06d}.pt"
    partial = path.with_name(path.name + ".tmp")
    digest = hashlib.sha256()
    with partial.open("wb") as file:
        for part in [json.dumps(state._asdict()).encode() + b"\n"] + [BLOCK] * BLOCKS:
            digest.update(part)
            file.write(part)
            file.flush()
            time.sleep(duration / (BLOCKS + 1))
        file.write(digest.hexdigest().encode())
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    note = FOLDER / "latest.json.tmp"
    note.write_text(json.dumps({"checkpoint": path.name, "saved": round(time.time(), 3), **state._asdict()}) + "\n")
    note.replace(FOLDER / "latest.json")
    for old in sorted(FOLDER.glob("step_*.pt"))[:-KEPT]:
        old.unlink()
    return path


def load(path: Path) -> State | None:
    """The state in a checkpoint, or None when the file is not whole."""
    data = path.read_bytes()
    if hashlib.sha256(data[:-64]).hexdigest().encode() != data[-64:]:
        return None
    return State(**json.loads(data.partition(b"\n")[0]))


def resume() -> State:
    """The state of the newest whole checkpoint, or that of a fresh run; says which."""
    for path in sorted(FOLDER.glob("step_*.pt"), reverse=True):
        state = load(path)
        if state is not None:
            print(f"resumed from {path}")
            return state
        print(f"passed over {path}: not whole")
    print("a fresh run")
    return State(step=0, loss=0.0, tokens=0)


def sign_in() -> IO[str]:
    """A shared lock, held while this program lives, so that the kernel can be asked which process works here (F_GETLK)."""
    FOLDER.mkdir(exist_ok=True)
    file = (FOLDER / "in-use").open("a+")
    fcntl.lockf(file, fcntl.LOCK_SH)
    return file


class Training:
    """A run from its newest checkpoint to its last step."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.begun = time.monotonic()
        self.state = resume()
        self.feeder = Feeder(options, self.state.step + 1)
        self.meter = Meter()
        self.profile = Profile(options.profile_interval)
        self.batch: list[int] | None = None  # of the step that is being worked on
        self.batch_ends = 0.0

    def run(self) -> None:
        """Works until the last step or an interrupt, and saves."""
        self.feeder.start()
        try:
            self.go_on()
            word = "done"
        except KeyboardInterrupt:
            print("interrupted, finishing the step")
            if self.batch is not None:
                self.step()
            word = "leaving"
        finally:
            self.feeder.close()
        print(f"saved {save(self.state, self.options.save_time)}, {word}")

    def go_on(self) -> None:
        """Step after step, with checkpoints and profile lines in between."""
        while self.state.step < self.options.steps:
            self.step()
            if self.state.step % self.options.checkpoint_every == 0:
                with self.profile.part("save"):
                    print(f"saved {save(self.state, self.options.save_time)}")
            if self.profile.due():
                print(f"profile {self.profile.report()}")
            if self.options.die_after is not None and time.monotonic() - self.begun >= self.options.die_after:
                raise RuntimeError(f"a trial: --die-after {self.options.die_after:g}")

    def step(self) -> None:
        """Works on one batch; called again after an interrupt, it goes on with the same one."""
        if self.batch is None:
            with self.profile.part("data"):
                self.batch = self.feeder.take()
            self.batch_ends = time.monotonic() + self.options.step_time
        with self.profile.part("compute"):
            time.sleep(max(0.0, self.batch_ends - time.monotonic()))
        number, tokens, sequences = self.state.step + 1, sum(self.batch), len(self.batch)
        loss = 1.8 + 9.0 / (1 + number / 40) ** 0.7 + random.Random(f"{self.options.seed}+{number}").gauss(0, 0.03)
        self.state, self.batch = State(number, round(loss, 4), self.state.tokens + tokens), None
        self.meter.add(tokens)
        print(f"step {number} loss {loss:.4f} tokens/s {self.meter.rate():.0f} sequences {sequences} seen {self.state.tokens}")


def main() -> int:
    """Runs the training; the exit status."""
    options = flags()
    if options.ignore_int:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    print(f"version {VERSION} pid {os.getpid()} flags {shlex.join(sys.argv[1:])}")
    with sign_in():
        Training(options).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
