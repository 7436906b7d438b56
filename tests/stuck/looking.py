"""Runs `deployctl why` at a process, from where the program's header says, and keeps what it answers."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.stuck import family
from tests.stuck.header import VERDICTS

ROOT = Path(__file__).parents[2]
WANTED = ("verdict", "detail", "confidence", "also", "pid", "evidence", "next", "kill_useless")
WEAK = ["setpriv", "--bounding-set=-kill,-sys_ptrace"]
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


@dataclass(frozen=True)
class Look:
    """One answer of `why`, and how long it took."""

    answer: dict[str, Any]
    seconds: float

    @property
    def verdict(self) -> str:
        return str(self.answer.get("verdict", "?"))

    @property
    def detail(self) -> str:
        return str(self.answer.get("detail") or "")

    def __str__(self) -> str:
        return f"{self.verdict}/{self.detail}" if self.detail else self.verdict


def why(pid: int, place: str, inside: int, scratch: Path, since: Path | None = None, sent: Sequence[str] = (), warm: bool = False) -> Look:
    """A look at a process of this machine. place: "here", "inside" (of the pid namespace of `inside`), "weak" (root that may not signal),
    "nobody". Raises AssertionError when the answer is not what the contract says of every answer.
    """
    before = {"here": [], "inside": ["nsenter", "-t", str(inside), "-p", "-m", "--"], "weak": WEAK, "nobody": NOBODY}[place]
    return ask(["--local", "--pid", str(pid)], scratch, since, sent, before, warm=warm and not before)


def ask(
    words: list[str], scratch: Path, since: Path | None, sent: Sequence[str], before: Sequence[str] = (), warm: bool = False, **more: str
) -> Look:
    """Runs `deployctl why` with these words, behind the words `before`; more: of the environment; warm: in this process."""
    words = ["why", *words, "--json", *(["--since", str(since)] if since else []), *(["--after", ",".join(sent)] if since and sent else [])]
    tree = os.pathsep.join(os.path.abspath(path) for path in os.environ.get("PYTHONPATH", str(ROOT / "src")).split(os.pathsep))
    more = {"PYTHONPATH": tree, "HOME": str(scratch), "XDG_STATE_HOME": str(scratch / "state"), **more}
    began = time.monotonic()
    status, out, err = _called(words, more, scratch) if warm else _run([*before, sys.executable, "-m", "deployctl", *words], more, scratch)
    assert status == 0, f"why ended with {status}: {err.strip()[-300:]}"
    return Look(_answer(out), time.monotonic() - began)


def _run(argv: list[str], more: dict[str, str], scratch: Path) -> tuple[int, str, str]:
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, env={**os.environ, **more}, cwd=scratch, timeout=4 * family.PATIENCE
    )
    return done.returncode, done.stdout, done.stderr


def _called(words: list[str], more: dict[str, str], scratch: Path) -> tuple[int, str, str]:
    from deployctl.cli.main import call

    os.environ.update(more)
    os.chdir(scratch)
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        status = call(words)
    os.chdir(ROOT)
    return status, out.getvalue(), err.getvalue()


def _answer(out: str) -> dict[str, Any]:
    lines = out.splitlines()
    assert len(lines) == 1, f"why --json printed {len(lines)} lines"
    answer: dict[str, Any] = json.loads(lines[0])
    lacking = [key for key in WANTED if key not in answer]
    assert not lacking, f"why --json lacks {lacking}"
    assert answer["verdict"] in VERDICTS, answer["verdict"]
    assert answer["confidence"] in ("proven", "strong", "hint"), answer["confidence"]
    assert answer["kill_useless"] in (True, False, "unknown"), answer["kill_useless"]
    assert answer["evidence"] or answer["verdict"] == "stopped", "a verdict without evidence"
    return answer
