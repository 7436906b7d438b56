"""One program from its start to its end: a look, the signals, another look, the cure, and nothing of it is left."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.stuck import family, looking
from tests.stuck.header import Header
from tests.stuck.looking import Look

LONGEST = 240.0  # seconds of one program: all its deadlines together
DWELL = 0.5  # seconds between what the signal brought about and the look: a person types no faster, and only what lasts is a state


@dataclass
class Row:
    """What came of one program."""

    name: str
    expected: str
    given: str = ""
    confidence: str = ""
    seconds: float = 0.0  # of the slower look
    wrong: list[str] = field(default_factory=list)
    evidence: list[str] = field(default_factory=list)  # of the last look


@dataclass(frozen=True)
class How:
    """How rounds are played."""

    bare: bool = False  # without the looks, to see whether the program does what its header says
    piped: bool = False  # the program's output goes into a pipe, so that `why` cannot read what was printed
    warm: bool = False  # looks in this process: see warm.py
    patience: float = family.PATIENCE  # seconds for each thing that must come

    def words(self) -> list[str]:
        """The same as words for the driver."""
        return [*(["--bare"] if self.bare else []), *(["--piped"] if self.piped else []), "--patience", str(self.patience)]


class Round:
    """A program under way, and what it says: lines `WORD …` on its stdout. docs/stuck.md has the words."""

    def __init__(self, header: Header, how: How) -> None:
        self.header, self.how, self.patience = header, how, how.patience
        self.scratch = Path(tempfile.mkdtemp(prefix="stuck-"))
        self.scratch.chmod(0o755)
        self.log = self.scratch / "said"
        self.pid = 0
        self.names: dict[str, int] = {}

    def start(self) -> None:
        """Runs the program until it is ready and at rest."""
        path = str(self.header.path)
        argv = {".py": [sys.executable, path], ".pl": ["perl", path], ".sh": ["sh", path]}[self.header.path.suffix]
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "SCRATCH": str(self.scratch)}
        environment.pop("PYTHONUNBUFFERED", None)  # with it a line of two words is written word by word, between those of others
        with self.log.open("ab", buffering=0) as log:
            read, write = os.pipe() if self.how.piped else (None, os.dup(log.fileno()))
            self.process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=write, stderr=write, env=environment, cwd=self.scratch, start_new_session=True,
                preexec_fn=family.defaults,
            )  # fmt: skip
            os.close(write)
        if read is not None:
            threading.Thread(target=_copy, args=(read, self.log), daemon=True).start()
        self.until(lambda: self.said("ready") or self._broke_off(), "ready")
        self.pid = int(self.said("ready")[0][0])
        self.names = {words[0]: int(words[1]) for words in self.said("name")}
        self.outer = self.names.get("outer", self.pid)  # a pid of a namespace means nothing out here
        self.until(self._at_rest, f"state {self.header.rest}")

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Waits for it, and collects meanwhile who was left to us, as the init of a machine does."""
        family.until(lambda: family.reap() or condition(), what, self.patience)

    def _broke_off(self) -> bool:
        if self.process.poll() is None:
            return False
        raise RuntimeError(f"ended before it was ready: {self.log.read_text(errors='replace')[-300:]}")

    def _at_rest(self) -> bool:
        return not self.header.rest or family.state(self.outer) in self.header.rest

    def said(self, word: str) -> list[list[str]]:
        """The words behind each line that begins with this one."""
        lines = self.log.read_text(errors="replace").rpartition("\n")[0].splitlines()  # whole ones
        return [line.split()[1:] for line in lines if line.split()[:1] == [word]]

    def look(self, since: Path | None = None) -> Look:
        header = self.header
        warm = self.how.warm
        return looking.why(self.pid, header.look, self.names.get("inside", 0), self.scratch, since, header.send, warm=warm)

    def signal(self) -> None:
        """Sends what the header names, and waits for what comes of it."""
        born = family.started(self.outer)
        for name in self.header.send:
            family.send(self.outer, signal.Signals[f"SIG{name}"])
            self.until(lambda name=name: self._came_about(born, name), " ".join(self.header.until))
        time.sleep(DWELL)
        family.reap()

    def _came_about(self, born: str, name: str) -> bool:
        word, *more = self.header.until or ["taken"]
        if word == "gone":
            return family.state(self.outer) == "gone" or family.started(self.outer) != born
        if word == "reused":
            return family.state(self.outer) != "gone" and family.started(self.outer) != born
        if word == "says":
            return bool(self.said(more[0]))
        if word == "state":
            return family.state(self.outer) in more
        if word == "dumping":
            return family.dumps_core(self.outer)
        if word == "pending":
            return family.pending(self.outer, name)
        return not family.pending(self.outer, name)

    def cure(self) -> None:
        """Does what the header says that ends the process, and sees whether it does: so the state was the one that it claims to be."""
        if self.header.cure == ["none"]:
            return
        born = family.started(self.outer)
        if family.ended(self.outer):
            raise RuntimeError("it had ended before the cure")
        for act in self.header.cure:
            word, _, whom = act.partition(" ")
            if word == "undo":
                self._undo()
            else:
                family.send(self.names[whom] if whom else self.outer, signal.Signals[f"SIG{word}"])
            if whom and word == "KILL":  # a tracer that is not quite dead eats the next signal
                self.until(lambda whom=whom: family.ended(self.names[whom]), f"the end of the {whom}")
        self.until(lambda: family.ended(self.outer) or family.started(self.outer) != born, f"the cure {self.header.cure}")

    def _undo(self) -> None:
        for path, value in self.said("undo"):
            try:
                Path(path).write_text(value)
            except OSError:
                pass  # it was done already, or its group is gone

    def clean(self) -> list[str]:
        """Ends and unmounts everything; what is left of it."""
        self._undo()
        left = [f"pid {pid}" for pid in family.end_all()]
        for (path,) in self.said("unmount"):
            subprocess.run(["umount", "-l", path], stderr=subprocess.DEVNULL, check=False)
        for (path,) in reversed(self.said("rmdir")):
            left += [] if _removed(Path(path)) else [path]
        shutil.rmtree(self.scratch, ignore_errors=True)
        return left


def _copy(read: int, log: Path) -> None:
    """As a logger at the end of a pipe does."""
    with log.open("ab", buffering=0) as out:
        while piece := os.read(read, 1 << 16):
            out.write(piece)


def _removed(path: Path) -> bool:
    """A control group is busy for a moment after the end of its last process."""
    try:
        family.until(lambda: family.reap() or not path.exists() or _rmdir(path), f"rmdir {path}", 5.0)
    except TimeoutError:
        return False
    return True


def _rmdir(path: Path) -> bool:
    try:
        path.rmdir()
    except OSError:
        return False
    return True


def play(header: Header, how: How) -> Row:
    """The whole round."""
    row = Row(header.name, " ".join(str(said) for said in header.after))
    family.adopt()
    round_ = Round(header, how)
    try:
        round_.start()
        if how.bare:
            time.sleep(DWELL)  # in place of the look: from the ready line to the state it is a step
            round_.signal()
        else:
            _looks(round_, row)
        round_.cure()
    except Exception as error:
        said = round_.log.read_text(errors="replace")[-200:] if round_.log.exists() else ""
        row.wrong.append(f"{type(error).__name__}: {error} {said if how.bare else ''}".strip())
    finally:
        row.wrong += [f"left behind: {what}" for what in round_.clean()]
    return row


def _looks(round_: Round, row: Row) -> None:
    header = round_.header
    before = round_.look()
    if header.rest and family.state(round_.outer) not in header.rest:
        row.wrong.append(f"the look changed its state to {family.state(round_.outer)}")
    row.wrong += early(header, before)
    kept = round_.scratch / "before.json"
    kept.write_text(json.dumps(before.answer))
    round_.signal()
    after = round_.look(kept)
    row.given, row.confidence, row.seconds = str(after), str(after.answer["confidence"]), max(before.seconds, after.seconds)
    row.wrong += faults(header, after, round_.names)
    row.evidence = [str(line) for line in after.answer["evidence"]]


def early(header: Header, before: Look) -> list[str]:
    """What of the look before is not as the header says."""
    return [] if any(said.fits(before.verdict, before.detail) for said in header.before) else [f"before: {before}"]


def faults(header: Header, after: Look, names: dict[str, int]) -> list[str]:
    """What of the look after is not as the header says."""
    wrong = [] if any(said.fits(after.verdict, after.detail) for said in header.after + header.fair) else [f"after: {after}"]
    helps = [_with_pid(word, names) for word in header.next]
    if helps and not wrong and not {after.answer["next"], str(after.answer["next"]).split(":")[0]} & set(helps):
        wrong.append(f"next: {after.answer['next']}")
    useless = json.dumps(after.answer["kill_useless"]).strip('"')
    if header.useless and not wrong and useless not in header.useless.split():
        wrong.append(f"kill_useless: {useless}")
    return wrong


def _with_pid(word: str, names: dict[str, int]) -> str:
    """`signal-child:NAME` with the pid that the program gave to that name."""
    act, _, whom = word.partition(":")
    return f"{act}:{names[whom]}" if whom in names else word
