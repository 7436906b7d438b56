"""What is known of programs that start another one: which of their options take a value, and what they are given to start.

Data only; `anatomy.py` reads a command line by it. Prefixes (env, nice) and interpreters are the agent's own (agent/match.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from deployctl.agent import match


@dataclass(frozen=True)
class Launcher:
    """How a program finds what it is to start, behind its own options. Long options are written with '-', also where '_' is meant.

    sub: the word that makes it a launcher (`uv run`); code, module, valued, attached: letters of short options, as in agent/match.py;
    rest_valued: every long option takes a value but the switches; operands: words before the command (`timeout 60 …`);
    script: what it starts is a script of its own interpreter, unless one of the options `command` was given; swallows: it takes a
    `--` right behind the script for itself; forwards: it is a launcher whose flags a playbook may set, not a mere prefix.
    """

    sub: str = ""
    code: str = ""
    module: str = ""
    valued: str = ""
    attached: str = ""
    long_code: frozenset[str] = frozenset()
    long_valued: frozenset[str] = frozenset()
    switches: frozenset[str] = frozenset()
    command: frozenset[str] = frozenset()
    rest_valued: bool = False
    signs: str = "-"
    assigns: bool = False
    operands: int = 0
    script: bool = False
    swallows: bool = False
    forwards: bool = True


def _names(text: str) -> frozenset[str]:
    return frozenset(f"--{name}" for name in text.split())


def of(grammar: match.Grammar) -> Launcher:
    """An interpreter or prefix of the agent's."""
    return Launcher(
        code=grammar.code, module=grammar.module, valued=grammar.valued, attached=grammar.attached, long_code=frozenset(grammar.long_code),
        long_valued=frozenset(grammar.long_valued), signs=grammar.signs, assigns=grammar.assigns, forwards=False,
    )  # fmt: skip


_NO_PYTHON = _names("no-python")
# Source: torch/distributed/run.py, get_args_parser (2.x); every other long option takes a value.
TORCHRUN = Launcher(
    valued="rt", switches=_names("help standalone module no-python run-path virtual-local-rank use-env"), command=_NO_PYTHON,
    rest_valued=True, script=True, swallows=True,
)  # fmt: skip
# Source: accelerate/commands/launch.py, launch_command_parser (1.x).
ACCELERATE = Launcher(
    sub="launch", valued="t", command=_NO_PYTHON, rest_valued=True, script=True, swallows=True,
    switches=_names(
        "help quiet cpu use-cpu multi-gpu tpu ipex use-xpu use-mps-device use-deepspeed use-fsdp use-tp use-megatron-lm "
        "use-parallelism-config enable-cpu-affinity dynamo-use-fullgraph dynamo-use-dynamic dynamo-use-regional-compilation "
        "same-network module no-python tpu-cluster no-tpu-cluster tpu-use-cluster tpu-use-sudo downcast-bf16 debug fp16"
    ),
)  # fmt: skip
# Source: deepspeed/launcher/runner.py, parse_args.
DEEPSPEED = Launcher(
    valued="Hie", command=_NO_PYTHON, rest_valued=True, script=True,
    switches=_names("help no-python module no-local-rank no-ssh no-ssh-check force-multi save-pid bind-cores-to-rank elastic-training"),
)  # fmt: skip
# Source: `uv run --help`, 0.13.
UV = Launcher(
    sub="run", module="m", valued="pwifPCE",
    long_valued=_names(
        "extra no-extra group no-group only-group env-file with with-editable with-requirements python index default-index index-url "
        "extra-index-url find-links upgrade-package upgrade-group reinstall-package index-strategy keyring-provider resolution prerelease "
        "fork-strategy exclude-newer exclude-newer-package config-setting config-settings-package no-build-isolation-package link-mode "
        "no-build-package no-binary-package no-sources-package cache-dir refresh-package python-preference python-platform color "
        "allow-insecure-host directory project config-file package torch-backend"
    ),
)  # fmt: skip
RUN = Launcher(sub="run", valued="CP", long_valued=_names("directory project"))
CONDA = Launcher(sub="run", valued="np", long_valued=_names("name prefix cwd root-prefix"))

LAUNCHERS: Mapping[str, Launcher] = {
    "torchrun": TORCHRUN, "accelerate": ACCELERATE, "deepspeed": DEEPSPEED, "uv": UV,
    "poetry": RUN, "pdm": RUN, "pixi": RUN, "rye": RUN, "hatch": RUN, "conda": CONDA, "mamba": CONDA, "micromamba": CONDA,
    "timeout": Launcher(operands=1, valued="ks", long_valued=_names("kill-after signal"), forwards=False),
    "taskset": Launcher(operands=1, forwards=False),
    "sudo": Launcher(
        valued="ugpCDhRrTtU", long_valued=_names("user group prompt chdir chroot host role type"), assigns=True, forwards=False
    ),
    "chrt": Launcher(operands=1, valued="TPD", long_valued=_names("sched-runtime sched-period sched-deadline"), forwards=False),
    "numactl": Launcher(
        valued="iwpPmNCl",
        long_valued=_names("interleave weighted-interleave preferred preferred-many membind cpunodebind physcpubind"), forwards=False,
    ),
}  # fmt: skip
MODULES: Mapping[str, str] = {  # what `python -m` starts: the same programs
    "torch.distributed.run": "torchrun", "torch.distributed.launch": "torchrun", "torch.distributed.elastic": "torchrun",
    "accelerate.commands.launch": "accelerate", "accelerate.commands.accelerate_cli": "accelerate", "accelerate": "accelerate",
    "deepspeed.launcher.runner": "deepspeed", "uv": "uv", "poetry": "poetry",
}  # fmt: skip
DOUBTFUL = ("torchrun", "accelerate", "deepspeed")  # behind another program they say that it is a wrapper, too
NO_SUB = ("accelerate.commands.launch",)  # modules that are the subcommand itself
