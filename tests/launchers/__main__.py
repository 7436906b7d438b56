"""`python -m tests.launchers`: stops programs behind the real launchers that are installed, and looks at what is left.

Not in CI: torch and accelerate are large. What is not here is said as that, and fails nothing.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.launchers.stage import Stage

TRAIN = Path(__file__).with_name("train.py")
LADDER = ["INT 60s", "TERM 20s", "KILL 10s"]
TORCHRUN = ["-m", "torch.distributed.run", "--nproc-per-node", "2"]  # torchrun, by its module


@dataclass(frozen=True)
class Case:
    """How a program is started, how it is stopped, and what must be there then."""

    name: str
    argv: Sequence[str]
    needs: Sequence[str] = ()
    save: str = "3"
    more: Sequence[str] = ()
    match: Any = "train.py"
    stop: Any = field(default_factory=lambda: LADDER)
    environment: dict[str, str] = field(default_factory=dict)
    ranks: int = 1
    script: str = ""
    saves: bool = True  # whether its checkpoint can be saved at all: a program that ignores INT is ended by TERM


PYTHON = sys.executable
ELASTIC = "torch.distributed.run"
CASES = (
    Case("python", [PYTHON, "train.py"]),
    Case("bash", ["bash", "run.sh"], script=f"{PYTHON} train.py $@\nexit 0\n"),
    Case("bash-tee", ["bash", "run.sh"], script=f"{PYTHON} train.py $@ | tee log2 >&2\nexit 0\n"),
    Case("background", ["bash", "run.sh"], script=f"{PYTHON} train.py $@ &\nwait\n", saves=False),
    Case("uv", ["uv", "run", "--no-project", PYTHON, "train.py"], ["uv"]),
    Case("accelerate", [PYTHON, "-m", "accelerate.commands.launch", "--cpu", "train.py"], ["accelerate", "torch"]),
    Case("loader", [PYTHON, "train.py"], ["torch"], more=["loader"]),
    Case("thread", [PYTHON, "train.py"], more=["thread"], stop=[{"signal": "INT", "wait": "60s", "again": True}, "TERM 20s"]),
    Case("torchrun", [PYTHON, *TORCHRUN, "train.py"], ["torch"], ranks=2, match=ELASTIC),
    Case("torchrun-by-script", [PYTHON, *TORCHRUN, "train.py"], ["torch"], ranks=2),
    Case(
        "torchrun-to-ranks", [PYTHON, *TORCHRUN, "train.py"], ["torch"], save="6", ranks=2, match=ELASTIC,
        environment={"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "2"}, stop={"ladder": LADDER, "to": "ranks"},
    ),
    Case(
        "torchrun-held", [PYTHON, *TORCHRUN, "train.py"], ["torch"], save="6", ranks=2, match=ELASTIC,
        environment={"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "2"}, stop={"ladder": LADDER, "to": "hold-agent"},
    ),
    Case("uv-torchrun", ["uv", "run", "--no-project", PYTHON, *TORCHRUN, "train.py"], ["uv", "torch"], ranks=2, match=ELASTIC),
    Case(
        "bash-torchrun", ["bash", "run.sh"], ["torch"], ranks=2, match="run.sh",
        script=f"{PYTHON} {' '.join(TORCHRUN)} train.py $@\nexit 0\n",
    ),
    Case(
        "accelerate-multi", [PYTHON, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "train.py"],
        ["accelerate", "torch", "gpu"], ranks=2, match="accelerate.commands.launch",
    ),
    Case("torchrun-loader", [PYTHON, *TORCHRUN, "train.py"], ["torch"], more=["loader"], ranks=2, match=ELASTIC),
)  # fmt: skip


def here(need: str) -> bool:
    """Whether a program or module is installed."""
    if need == "uv":
        return shutil.which("uv") is not None
    return shutil.which("nvidia-smi") is not None if need == "gpu" else importlib.util.find_spec(need) is not None


def play(case: Case, home: Path) -> tuple[bool, str]:
    """(whether all is as it must be, what was found)."""
    with Stage(home, case.name) as stage:
        shutil.copy(TRAIN, stage.home)
        if case.script:
            (stage.home / "run.sh").write_text(case.script)
        neighbour = Stage(home, case.name + "-neighbour")
        with neighbour:
            (neighbour.home / "train.py").write_text("import time\nprint('READY', flush=True)\ntime.sleep(600)\n")
            beside = neighbour.start([PYTHON, "train.py"], {})
            stage.start([*case.argv, case.save, *case.more], case.environment, case.ranks)
            stage.playbook({"text": case.match, "directory": str(stage.home)}, case.stop)
            status = stage.stop()
            left, saved = stage.alive(), len(list(stage.home.glob("ckpt_*.pt")))
            wrong = [f"status {status}"] if status else []
            wrong += [f"alive {left}"] if left else []
            wrong += [f"{saved} of {case.ranks} checkpoints"] if case.saves and saved != case.ranks else []
            wrong += ["half a checkpoint"] if list(stage.home.glob("*.tmp")) else []
            wrong += ["the neighbour is gone"] if beside not in neighbour.alive() else []
            rungs = ", ".join(f"{event['signal']} to {len(event['pids'])}" for event in stage.said("rung"))
            skipped = "".join(f", {event['signal']} skipped ({event['verdict']})" for event in stage.said("rung-skipped"))
            took = "".join(f" in {event['seconds']} s" for event in stage.said("stopped"))
            return not wrong, f"{rungs}{skipped}{took}" + (f"; WRONG: {', '.join(wrong)}\n{stage.log()[-1500:]}" if wrong else "")


def main() -> int:
    """1 when something was lost, doubled, cut or left."""
    parser = argparse.ArgumentParser(prog="python -m tests.launchers")
    parser.add_argument("--only", metavar="NAME", choices=[case.name for case in CASES])
    only = parser.parse_args().only
    bad = 0
    for case in CASES:
        if only and case.name != only:
            continue
        missing = [need for need in case.needs if not here(need)]
        if missing:
            print(f"-      {case.name:20} not here: {', '.join(missing)}")
            continue
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as home:
            try:
                well, found = play(case, Path(home))
            except RuntimeError as error:
                well, found = False, str(error)
        bad += not well
        print(f"{'ok' if well else 'WRONG':6} {case.name:20} {time.monotonic() - begun:5.1f} s  {found}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
