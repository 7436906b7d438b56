"""What the tests of the agent's operations share. They need nothing but the agent and pytest, on Python 3.8 too."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import deployctl.agent

PATIENCE = 20.0  # seconds that a test waits for what must come
HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(deployctl.agent.__file__))))  # where `deployctl` is imported from


def until(condition: Callable[[], Any], what: str) -> Any:
    """The first true value of the condition; fails the test when it does not come."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"{what} did not come about")


def start(code: str, *words: str, **more: Any) -> subprocess.Popen[bytes]:
    """A Python of this version that runs the code, with the agent to import."""
    environment = dict(os.environ, PYTHONPATH=HOME, **more.pop("environment", {}))
    return subprocess.Popen([sys.executable, "-c", code, *words], stdout=subprocess.PIPE, env=environment, **more)


def forked(act: Callable[[], object]) -> int:
    """Does it in a child of this process: its exit status, 0 when the act came to its end, 1 when it raised, minus n for signal n."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the test runner has threads; the child starts none and leaves at once
        child = os.fork()
    if not child:
        status = 1
        try:
            act()
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


class Job:
    """What the file operations need of a job: its run, and a list that keeps the events."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.events: list[dict[str, Any]] = []

    def emit(self, what: str, sync: bool = False, **fields: Any) -> None:
        self.events.append(dict(fields, what=what))


def write(path: str, content: bytes) -> str:
    """A file, its directories made."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as out:
        out.write(content)
    return path


def read(path: str) -> bytes:
    with open(path, "rb") as stream:
        return stream.read()
