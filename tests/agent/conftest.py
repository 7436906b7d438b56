"""Real processes in real states, ended by pid when the test is over. It needs nothing but the agent and pytest, on Python 3.8 too."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from deployctl.agent import procfs

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LAYOUT_KNOWN = (3, 8) <= sys.version_info[:2] <= (3, 13) and getattr(sys, "_is_gil_enabled", lambda: True)()
collect_ignore = [] if LAYOUT_KNOWN else ["test_frames.py"]  # there is nothing to test where no frame can be read
PATIENCE = 20.0  # seconds that a test waits for what must come
OURS = str(os.getpid())  # in every name that is looked for, since other runs of these tests may be under way


def until(condition: Callable[[], Any], what: str = "the condition") -> Any:
    """The first true value of the condition; fails the test when it does not come."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"{what} did not come about")


class Started:
    """A program that a test started: its process and the pids that it named on its first line."""

    def __init__(self, process: subprocess.Popen[str], script: str) -> None:
        self.process, self.script, self.pid = process, script, process.pid
        self.pids: list[int] = []
        self.name = os.path.basename(script)

    @property
    def workload(self) -> dict[str, Any]:
        return {"name": "train", "match": self.name, "directory": os.path.dirname(self.script)}


@pytest.fixture
def start(tmp_path: Any) -> Iterator[Callable[..., Started]]:
    """Starts a Python program from its text and waits for its line `READY pid …`, which may name further processes to end."""
    running: list[Started] = []

    def run(text: str, before: Any = (), name: str = "", wait: bool = True, **more: Any) -> Started:
        script = str(tmp_path / (name or f"train_{OURS}_{len(running)}.py"))
        with open(script, "w") as out:
            out.write(text)
        argv = [*before, script] if before else [sys.executable, script]
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, universal_newlines=True, **more)
        started = Started(process, script)
        running.append(started)
        if wait:
            assert process.stdout is not None
            assert select.select([process.stdout], [], [], 3 * PATIENCE)[0], "it is not ready"
            words = process.stdout.readline().split()
            assert words[:1] == ["READY"], words
            started.pids = [int(word) for word in words[1:]]
        return started

    yield run
    for started in reversed(running):  # a tracer before what it traces
        for pid in [*started.pids, started.pid]:
            finish(pid, started)
        started.process.wait(timeout=PATIENCE)
        if started.process.stdout is not None:
            started.process.stdout.close()


def finish(pid: int, started: Started) -> None:
    """Ends a process that the test started, if it is still one of ours."""
    environment = procfs.environment(pid) or {}
    if pid == started.pid or "PYTEST_CURRENT_TEST" in environment:
        try:
            os.kill(pid, signal.SIGKILL)
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            return
        if pid != started.pid:  # the next test would find it
            until(lambda: not alive(pid), "the end of a process of the test")


class Job:
    """What the ladder needs of a job: facts, and a list that keeps the events."""

    def __init__(self, started: Started | None = None, mark: bytes | None = None) -> None:
        self.workload = started.workload if started else {"name": "train", "match": "no-such-program", "directory": "/"}
        self.before = procfs.look(started.pid) if started else None
        self.launched: dict[str, Any] | None = None
        self.record: dict[str, Any] | None = None
        self.samples: list[dict[str, Any]] = []
        self.stopped_at: float | None = None
        self.rung_sent = -1
        self.climb: Any = None
        self.mark = mark
        self.events: list[dict[str, Any]] = []

    def emit(self, what: str, sync: bool = False, **fields: Any) -> None:
        self.events.append(dict(fields, what=what, t=time.time()))

    def heed(self) -> None:
        """Nobody takes this run back."""

    def exit_of(self, pid: int, started: int) -> dict[str, Any] | None:
        return None

    def said(self, what: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["what"] == what]


def asleep(pid: int) -> Any:
    """The process when it has come to rest in state S, as a look shows it."""
    return until(lambda: [seen for seen in [procfs.look(pid)] if seen["state"] == "S"], "the sleep")[0]


def alive(pid: int) -> bool:
    glance = procfs.glance(pid)
    return glance is not None and glance.state not in procfs.DEAD


def as_nobody(code: str) -> str:
    """What the code prints when it runs as another user, who may not be able to read our source: it is imported before."""
    paths = [os.path.join(ROOT, "src"), ROOT]
    modules = "from deployctl.agent import capture, evidence, faults, hearing, ladder, procfs\nfrom tests.agent.judged import judged\n"
    loader = f"import os, sys\nsys.path[:0] = {paths!r}\n" + modules
    change = "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
    argv = [sys.executable, "-c", loader + change + code]
    return subprocess.run(argv, stdout=subprocess.PIPE, text=True, timeout=PATIENCE, check=True).stdout


SLEEP = "import time\nprint('READY', flush=True)\ntime.sleep(600)\n"
IGNORES = "import signal, time\nfor name in {names}: signal.signal(name, signal.SIG_IGN)\nprint('READY', flush=True)\ntime.sleep(600)\n"
BLOCKS = """import signal, time
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
print('READY', flush=True)
while True: time.sleep(600)
"""
# Four forked workers that carry the parent's argv, deaf to INT; the parent leaves without them.
LEAVES_WORKERS = """import os, signal, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
pids = []
for _ in range(4):
    pid = os.fork()
    if not pid:
        time.sleep(600)
        os._exit(0)
    pids.append(pid)
signal.signal(signal.SIGINT, lambda *_: os._exit(0))
print('READY', *pids, flush=True)
while True: time.sleep(600)
"""
SWALLOWS = """import signal, time
signal.signal(signal.SIGINT, lambda *_: None)
print('READY', flush=True)
while True: time.sleep(600)
"""
# The parent waits in D for a child that is held between fork and exec: it opens a FIFO that nobody writes to.
VFORKS = """import os, sys
os.mkfifo(sys.argv[0] + '.fifo')
print('READY', flush=True)
os.posix_spawn('/bin/true', ['true'], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, sys.argv[0] + '.fifo', os.O_RDONLY, 0)])
"""
TRACER = """import ctypes, os, time
assert ctypes.CDLL(None).ptrace(16, {pid}, None, None) == 0
os.waitpid({pid}, 0x40000000)
print('READY', flush=True)
time.sleep(600)
"""
# Blocked in every thread, and yet taken: through a signalfd.
SIGNALFD = """import ctypes, os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
handle = ctypes.CDLL(None).signalfd(-1, (ctypes.c_ulong * 16)(1 << signal.SIGINT - 1), 0)
print('READY', flush=True)
os.read(handle, 128)
"""
