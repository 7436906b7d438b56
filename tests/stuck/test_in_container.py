"""`deployctl why` from the controller at programs in containers: the same programs, the same verdicts."""

from __future__ import annotations

import io
import json
import secrets
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.lab.host import ENVIRONMENT
from tests.lab.lab import Lab
from tests.stuck import header, looking, rounds
from tests.stuck.looking import ROOT

PRIVILEGED, UNPRIVILEGED = 200, 201


class Stage:
    """A program under way in a container."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        _, pid, names = self.heard().split(maxsplit=2)
        self.pid, self.names = int(pid), json.loads(names)

    def heard(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the stage broke off"
        return line

    def does(self, word: str) -> None:
        print(word, file=self.process.stdin, flush=True)
        assert self.heard() == "done\n"

    def left(self) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return json.loads(self.heard())


def bundle() -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for path in (ROOT / "tests" / "__init__.py", *(ROOT / "tests" / "stuck").rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                tar.add(path, path.relative_to(ROOT))
    return made.getvalue()


@contextmanager
def stage(lab: Lab, ct: int, name: str) -> Iterator[Stage]:
    directory = f"/srv/stuck-{secrets.token_hex(4)}"
    lab.exec(ct, "mkdir", directory)
    try:
        lab.exec(ct, "tar", "-xf", "-", "-C", directory, "--no-same-owner", input=bundle())
        words = ["env", "-C", directory, "python3", "-m", "tests.stuck.stage", name]
        argv = lab.host.inside("lxc-attach", "-n", str(ct), "--", *words)
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
            yield Stage(process)
    finally:
        lab.exec(ct, "rm", "-rf", directory)


@pytest.mark.lab
@pytest.mark.parametrize(
    ("ct", "name"),
    [
        (PRIVILEGED, "in-background.sh"),
        (PRIVILEGED, "leaves-its-ranks.py"),
        (UNPRIVILEGED, "waits-for-deaf-tool.py"),
        (UNPRIVILEGED, "handler-needs-queue.py"),
    ],
)
def test_why_names_the_state_of_a_program_in_a_container(lab: Lab, ct: int, name: str, tmp_path: Path) -> None:
    program = header.read(header.PROGRAMS / name)
    hosts, kept = str(lab.hosts_file), tmp_path / "before.json"
    with stage(lab, ct, name) as staged:
        words = [f"ct{ct}", "--pid", str(staged.pid)]
        before = looking.ask(words, tmp_path, None, (), DEPLOYCTL_HOSTS=hosts)
        assert rounds.early(program, before) == []
        kept.write_text(json.dumps(before.answer))
        staged.does("signal")
        after = looking.ask(words, tmp_path, kept, program.send, DEPLOYCTL_HOSTS=hosts)
        assert rounds.faults(program, after, staged.names) == [], "\n".join(after.answer["evidence"])
        staged.does("cure")
        assert staged.left() == []
