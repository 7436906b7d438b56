"""What tests/run.sh leaves out is told, and where nothing may be left out a skipped test is a failure."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WAYS = {
    "mark": "@pytest.mark.skipif(True, reason='no such machine')\ndef test(): pass\n",
    "call": "def test(): pytest.skip('no such machine')\n",
    "fixture": "@pytest.fixture\ndef made(): pytest.skip('no such machine')\ndef test(made): pass\n",
    "module": "pytest.skip('no such machine', allow_module_level=True)\n",
}


def play(home: Path, text: str, *words: str) -> subprocess.CompletedProcess[str]:
    (home / "test_it.py").write_text(f"import pytest\ndef test_well(): pass\n{text}")
    (home / "pytest.ini").write_text("[pytest]\n")
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", str(home / "pytest.ini"), *words, str(home)]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(("way", "workers"), [*((way, ()) for way in WAYS), ("call", ("-n", "1"))])
def test_a_skip_is_a_failure_that_says_why(tmp_path: Path, way: str, workers: tuple[str, ...]) -> None:
    done = play(tmp_path, WAYS[way], "-p", "tests.no_skips", *workers)
    assert done.returncode != 0, done.stdout
    assert "left out: " in done.stdout
    assert "no such machine" in done.stdout


def test_without_the_plugin_a_skip_is_none(tmp_path: Path) -> None:
    assert play(tmp_path, WAYS["call"]).returncode == 0


def test_what_passes_and_what_is_expected_to_fail_is_well(tmp_path: Path) -> None:
    done = play(tmp_path, "@pytest.mark.xfail\ndef test(): assert False\n", "-p", "tests.no_skips")
    assert done.returncode == 0, done.stdout


CHOOSE = """eval "$(sed '/^whole=yes$/,$d' tests/run.sh)"
work=$1 PATH=$2 whole=yes others='' pyenv_versions=/nowhere
: >"$work/left-out"
choose_pythons
while read -r line; do echo "$line"; done <"$work/left-out"
"""  # the functions of the script, and what it does to choose


def test_a_python_that_is_not_here_is_left_out_loudly(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    here = "{}.{}".format(*sys.version_info[:2])
    (tmp_path / "bin" / f"python{here}").symlink_to(sys.executable)
    done = subprocess.run(
        ["sh", "-c", CHOOSE, "sh", str(tmp_path), str(tmp_path / "bin")], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    missing = [version for version in ("3.10", "3.11", "3.12", "3.13") if version != here]
    told = [f"the controller's own tests on Python {version}: not found (pyenv install {version})" for version in missing]
    assert done.stdout.splitlines()[: len(told)] == told
    assert "the agent's tests on Python 3.8" in done.stdout
