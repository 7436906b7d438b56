"""Runs `deployctl why` at a process, from where the program's header says, and keeps what it answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
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


def why(pid: int, place: str, inside: int, scratch: Path, since: Path | None = None, sent: Sequence[str] = ()) -> Look:
    """A look at a process of this machine. place: "here", "inside" (of the pid namespace of `inside`), "weak" (root that may not signal),
    "nobody". Raises AssertionError when the answer is not what the contract says of every answer.
    """
    before = {"here": [], "inside": ["nsenter", "-t", str(inside), "-p", "-m", "--"], "weak": WEAK, "nobody": NOBODY}[place]
    return ask(["--local", "--pid", str(pid)], scratch, since, sent, before)


def ask(words: list[str], scratch: Path, since: Path | None, sent: Sequence[str], before: Sequence[str] = (), **environment: str) -> Look:
    """Runs `deployctl why` with these words, behind the words `before`."""
    argv = [*before, sys.executable, "-m", "deployctl", "why", *words, "--json"]
    argv += ["--since", str(since)] if since else []
    argv += ["--after", ",".join(sent)] if since and sent else []
    tree = os.pathsep.join(os.path.abspath(path) for path in os.environ.get("PYTHONPATH", str(ROOT / "src")).split(os.pathsep))
    environment = {**os.environ, "PYTHONPATH": tree, "HOME": str(scratch), "XDG_STATE_HOME": str(scratch / "state"), **environment}
    began = time.monotonic()
    process = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=scratch
    )
    try:
        out, err = process.communicate(timeout=4 * family.PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    assert process.returncode == 0, f"why ended with {process.returncode}: {err.strip()[-300:]}"
    return Look(_answer(out), time.monotonic() - began)


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
