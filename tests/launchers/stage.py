"""A workspace with a local target, a program started by hand on it, and what deployctl says and does to it. Ends whatever it started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

PATIENCE = 120.0  # seconds that a program may take to be ready: the first import of torch is slow


class Stage:
    """One program of a case, in a directory of its own. `mark` is in the environment of all that it starts."""

    def __init__(self, home: Path, name: str) -> None:
        self.home, self.name = home / name, name
        self.mark = f"STAGE_OF_TESTS={os.getpid()}-{name}"
        (self.home / "playbooks").mkdir(parents=True)
        self.events: list[dict[str, Any]] = []
        self._started: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for pid in self.alive():
            os.kill(pid, signal.SIGKILL)
        if self._started is not None:
            self._started.wait()

    def start(self, argv: Sequence[str], environment: Mapping[str, str], ready: int = 1) -> int:
        """Starts the program, INT at its default, and waits until the log says READY so many times; the pid."""
        name, _, text = self.mark.partition("=")
        surroundings = {**os.environ, **environment, name: text, "PYTHONUNBUFFERED": "1"}
        with open(self.home / "log", "ab") as log:
            self._started = subprocess.Popen(
                argv, cwd=self.home, env=surroundings, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None,
            )  # fmt: skip
        end = time.monotonic() + PATIENCE
        while self.log().count("READY") < ready:
            if self._started.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{self.name} is not ready:\n{self.log()[-2000:]}")
            time.sleep(0.1)
        return self._started.pid

    def log(self) -> str:
        """All that it has printed."""
        path = self.home / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def playbook(self, match: Any, stop: Any) -> None:
        """The hosts file and a playbook that only stops."""
        (self.home / "hosts.yaml").write_text(json.dumps({"targets": {"here": {"local": True, "state": str(self.home / "state")}}}))
        workload = {"name": "train", "directory": str(self.home), "command": ["python3", "train.py"], "log": "log", "match": match}
        (self.home / "playbooks" / "halt.yaml").write_text(json.dumps({"workload": workload, "steps": [{"stop": stop}]}))

    def deployctl(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Runs deployctl in the workspace."""
        environment = {**os.environ, "XDG_STATE_HOME": str(self.home / "journal")}
        argv = [sys.executable, "-m", "deployctl", *words]
        return subprocess.run(argv, cwd=self.home, env=environment, capture_output=True, text=True, timeout=600, check=False)

    def stop(self) -> int:
        """Stops the workload by its playbook; the exit status. The events are kept."""
        done = self.deployctl("stop", "here", "--json")
        self.events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if done.stderr:
            print(done.stderr, file=sys.stderr)
        return done.returncode

    def why(self, *words: str) -> dict[str, Any]:
        """An answer of `deployctl why --json`; it is kept as a file for a later --since."""
        done = self.deployctl("why", "--local", "--json", *words)
        (self.home / "why.json").write_text(done.stdout)
        return dict(json.loads(done.stdout)) if done.stdout.strip() else {"verdict": done.stderr.strip()}

    def said(self, what: str) -> list[dict[str, Any]]:
        """The events of that word."""
        return [event for event in self.events if event["what"] == what]

    def alive(self) -> list[int]:
        """Every living process that carries the mark."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                marked = entry.name.isdigit() and f"{self.mark}\0".encode() in (entry / "environ").read_bytes()
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0] if marked else "Z"
            except (OSError, IndexError):
                continue
            if state not in "ZX":
                found.append(int(entry.name))
        return found
