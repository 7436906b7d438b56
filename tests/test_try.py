"""The README's first command on a fresh clone, by somebody with an empty home."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.site import ROOT


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a clone holds of this working tree."""
    clone = tmp_path_factory.mktemp("clone") / "a clone"
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).exists():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, clone / name)
    return clone


def try_it(clone: Path, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    kept = {name: text for name, text in os.environ.items() if name in ("PATH", "LANG") or name.startswith("PIP_")}
    argv = ["sh", "deploy/try.sh", *words]
    return subprocess.run(argv, cwd=clone, env={**kept, "HOME": str(home)}, capture_output=True, text=True, timeout=300, check=False)


def test_a_fresh_clone_shows_a_restart(clone: Path, tmp_path: Path) -> None:
    done = try_it(clone, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "$ cd " in done.stdout and "deployctl restart ct200 --profile-interval 60" in done.stdout
    last = done.stdout.splitlines()[-1]
    assert re.match(r"ct200: the workload runs as pid \d+: python3 \S+ --profile-interval=60 .*; it was down for ", last)
    pid = re.search(r"as pid (\d+)", last)
    assert pid and not Path(f"/proc/{pid[1]}").exists(), "the demo leaves nothing"


def test_keep_leaves_a_workspace_to_go_on_from(clone: Path, tmp_path: Path) -> None:
    done = try_it(clone, tmp_path, "--keep", str(tmp_path / "kept"))
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout.partition("Go on:\n")[2].partition("to reach a real host")[0]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    try:
        again = subprocess.run(["sh", "-ec", said], env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert again.returncode == 0, again.stdout + again.stderr
        assert "the workload runs" in again.stdout.splitlines()[-1]
        assert "--profile-interval=30" in again.stdout
    finally:
        from deployctl.demo import workspace

        workspace.stop(workspace.Workspace(tmp_path / "kept"))
