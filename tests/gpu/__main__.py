"""`python -m tests.gpu`: real CUDA processes in the states that a training run gets into, what `why` says of them, how a stop ends them.

Needs a GPU and torch; not in CI.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.launchers.stage import Stage

HEAD = "import sys, threading, time, torch\nx = torch.ones(1, device='cuda')\ntorch.cuda.synchronize()\n"
CYCLES = "int({seconds} * 1.7e9)"
LONG = HEAD + "print('READY', flush=True)\ntime.sleep(1)\ntorch.cuda._sleep(" + CYCLES + ")\ntorch.cuda.synchronize()\ntime.sleep(60)\n"
THREADS = HEAD + """
def train():
    a = torch.randn(2048, 2048, device='cuda')
    while True:
        a = (a @ a).clamp(-1, 1); torch.cuda.synchronize()
threads = [threading.Thread(target=train) for _ in range(3)]
for thread in threads: thread.start()
print('READY', flush=True)
for thread in threads: thread.join()
"""
STEPS = HEAD + """
a = torch.randn(4096, 4096, device='cuda')
print('READY', flush=True)
try:
    while True:
        a = (a @ a).clamp(-1, 1); torch.cuda.synchronize()
except KeyboardInterrupt:
    torch.save(a, 'checkpoint.pt')
"""
BIG = HEAD + """held = torch.empty(100 * 2**30, dtype=torch.uint8, device='cuda').fill_(1)
torch.cuda.synchronize()
print('READY', flush=True)
time.sleep(600)
"""


@dataclass(frozen=True)
class Case:
    """A program, the ladder of its stop, and how it is started."""

    name: str
    text: str
    stop: Any
    shell: str = ""
    settle: float = 1.5  # seconds until it is in its state
    expected: tuple[str, ...] = field(default=())  # verdicts that are right after INT; none: they are only told


CASES = (
    Case("training-steps", STEPS, ["INT 60s", "TERM 10s", "KILL 10s"]),
    Case("long-kernel", LONG.format(seconds=25), ["INT 60s", "TERM 10s", "KILL 10s"], settle=3, expected=("handler-not-run",)),
    Case("endless-kernel", LONG.format(seconds=100_000), ["INT 5s", "TERM 10s", "KILL 10s"], settle=3, expected=("handler-not-run",)),
    Case(
        "worker-threads", THREADS, [{"signal": "INT", "wait": "30s", "again": True}, "TERM 10s", "KILL 10s"],
        expected=("exit-blocked", "shutdown-pending"),
    ),
    Case("nohup-ampersand", STEPS, ["INT 60s", "TERM 10s"], shell="nohup {python} train.py & wait", expected=("signal-ignored",)),
    Case("100-gb-at-kill", BIG, ["KILL 30s"]),
)  # fmt: skip


def told(answer: dict[str, Any]) -> str:
    """A verdict in one line."""
    also = f" also {', '.join(answer['also'])}" if answer.get("also") else ""
    return f"{answer['verdict']} {answer.get('detail', '')} ({answer.get('confidence')}; next {answer.get('next')}){also}"


def play(case: Case, home: Path) -> bool:
    """Whether what is expected was said, and nothing is left."""
    with Stage(home, case.name) as stage:
        (stage.home / "train.py").write_text(case.text)
        argv = ["sh", "-c", case.shell.format(python=sys.executable)] if case.shell else [sys.executable, "train.py"]
        stage.start(argv, {})
        time.sleep(case.settle)
        pid = next(pid for pid in stage.alive() if b"\0train.py\0" in Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"sh\0-c\0", b""))
        before = stage.why("--pid", str(pid))
        print(f"== {case.name}: before: {told(before)}")
        right = True
        if case.stop[0] != "KILL 30s":
            earlier = stage.home / "earlier.json"
            (stage.home / "why.json").rename(earlier)
            os.kill(pid, signal.SIGINT)
            time.sleep(2)
            after = stage.why("--pid", str(pid), "--since", str(earlier), "--after", "INT")
            print(f"   2 s after INT: {told(after)}")
            print("      " + "\n      ".join(after.get("evidence", [])[:14]))
            right = not case.expected or after["verdict"] in case.expected
    with Stage(home, case.name + "-stop") as stage:
        (stage.home / "train.py").write_text(case.text)
        stage.start(argv, {})
        time.sleep(case.settle)
        stage.playbook({"text": "train.py", "directory": str(stage.home)}, case.stop)
        begun = time.monotonic()
        status = stage.stop()
        print(f"   stop: status {status} after {time.monotonic() - begun:.1f} s, alive {stage.alive()}")
        for event in stage.events:
            if event["what"] in ("rung", "rung-skipped", "again", "stopped", "not-stopped", "failed"):
                shown = {name: event[name] for name in ("signal", "verdict", "detail", "seconds", "by", "outright", "why") if name in event}
                print(f"      {event['what']}: {shown}")
        return right and status == 0 and not stage.alive()


def main() -> int:
    """1 when a verdict was wrong or a stop left something."""
    wrong = []
    with tempfile.TemporaryDirectory() as home:
        for case in CASES:
            try:
                if not play(case, Path(home)):
                    wrong.append(case.name)
            except (RuntimeError, StopIteration) as error:
                print(f"== {case.name}: {error}")
                wrong.append(case.name)
    print("wrong: " + ", ".join(wrong) if wrong else "all as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
