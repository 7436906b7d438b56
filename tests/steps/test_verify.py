"""verify: every staged .py file is compiled by the workload's interpreter, in memory; all faults are told at once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deployctl.errors import AgentError, DeployError, RefusedError
from deployctl.steps.verify import Verified, Verify
from tests.steps import RUN, Talk, opened, refusal, refused, said, setting, steps_of

PYTHON = "/usr/bin/python3"


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    """A session whose workload is started by the system's python3."""
    made = Talk(tmp_path)
    yield made
    made.close()


def verify(talk: Talk) -> Any:
    """What the step finds in the staged files of `talk.train`."""
    talk.push()
    return Verify(py_compile=True).prepare(None, talk.session, setting(), opened(), talk.record)


# --- the model and compile


@pytest.mark.parametrize(
    ("steps", "on"),
    [
        ("  - verify: py_compile\n", True),
        ("  - verify: {py_compile: true}\n", True),
        ("  - verify: {py_compile: false}\n", False),
        ("  - verify\n", False),
    ],
)
def test_the_shorthand_turns_the_check_on(tmp_path: Path, steps: str, on: bool) -> None:
    assert steps_of(tmp_path, steps) == (Verify(py_compile=on),)


@pytest.mark.parametrize(
    ("steps", "line", "what", "todo"),
    [
        ("  - verify: pycompile\n", 7, "verify: 'pycompile' is no key of verify", "did you mean 'py_compile'?"),
        ("  - verify:\n      py_compile: yes\n", 8, "verify: py_compile: wants true or false, not 'yes'", "write true or false"),
        ("  - verify:\n    - py_compile\n", 7, "verify: wants a map of keys and values, not a list", "a map"),
    ],
)
def test_a_faulty_verify_is_refused_in_its_line(tmp_path: Path, steps: str, line: int, what: str, todo: str) -> None:
    said = refusal(tmp_path, steps)
    assert said[:2] == (line, what)
    assert todo in said[2]


def test_verify_leaves_nothing_to_the_job() -> None:
    done = Verify(py_compile=True).compile(setting(), Verified(1, PYTHON, "3.11.2"))
    assert (done.do, done.undo) == ((), ())


def test_verify_is_described_by_what_it_checks() -> None:
    assert Verify(py_compile=True).describe() == {"step": "verify", "py_compile": True}


# --- in a target


def test_good_files_are_verified_by_the_workloads_python(talk: Talk) -> None:
    talk.write("a.py", "x = 'ä'\n".encode())
    talk.write("b.txt", b"no python (")
    found = verify(talk)
    version = subprocess.run(
        [PYTHON, "-c", "import platform; print(platform.python_version())"], capture_output=True, text=True, check=True
    )
    assert found == Verified(1, PYTHON, version.stdout.strip())
    assert said(talk.events, "verified")[0]["files"] == 1


def test_without_the_check_nothing_is_compiled(talk: Talk) -> None:
    talk.write("a.py", b"def (\n")
    talk.push()
    assert Verify().prepare(None, talk.session, setting(), opened(), talk.record) is None
    assert said(talk.events, "verified") == []


def test_all_faults_are_told_at_once_with_their_lines(talk: Talk) -> None:
    talk.write("a.py", b"x = 1\ny = = 2\n")
    talk.write("sub/b.py", b"\n\n  return\n")
    talk.write("c.py", b"x = 1\n")
    error = refused(lambda: verify(talk))
    assert isinstance(error, RefusedError)
    assert error.where == "verify"
    assert [fault.rsplit(": ", 1)[0] for fault in error.what.split("; ")] == ["a.py:2", "sub/b.py:3"]
    assert error.todo.startswith(f"{PYTHON} (3.")


ODD = {
    "a NUL byte": b"x = 1\0\n",
    "bytes that are no UTF-8": b"x = '\xff'\n",
    "an unknown coding": b"# coding: no-such-coding\n",
    "nesting without end": b"(" * 5000 + b")" * 5000,
    "a sum without end": b"+".join([b"1"] * 100_000),
    "signs without end": b"-" * 100_000 + b"1\n",
    "an open string": b"'''\n",
    "a number without end": b"x = " + b"9" * 10_000 + b"\n",
}


@pytest.mark.parametrize("content", ODD.values(), ids=ODD.keys())
def test_an_odd_file_is_a_fault_or_passes_but_breaks_nothing(talk: Talk, content: bytes) -> None:
    talk.write("odd.py", content)
    talk.write("bad.py", b"def (\n")
    error = refused(lambda: verify(talk))
    assert isinstance(error, RefusedError)
    assert "bad.py:1: " in error.what
    assert "None" not in error.what
    assert "Traceback" not in error.what


def test_a_nul_byte_is_named_with_its_file(talk: Talk) -> None:
    talk.write("nul.py", b"x = 1\n\0\n")
    error = refused(lambda: verify(talk))
    assert error.what.startswith("nul.py")
    assert "null byte" in error.what


@pytest.mark.parametrize("name", ["with space.py", "two\nlines.py", "größe.py", "\udce9.py", "-c.py", "it's.py"])
def test_a_fault_names_its_file_whatever_it_is_called(talk: Talk, name: str) -> None:
    talk.write(name, b"def (\n")
    error = refused(lambda: verify(talk))
    assert error.what.startswith(f"{name}:1: ")


@pytest.mark.parametrize("content", [b"x = 1\n", b"def (\n", b"x = '\\d'\n"])
def test_nothing_is_written_and_no_time_is_touched(talk: Talk, content: bytes) -> None:
    talk.write("a.py", content)
    talk.write_live("a.py")
    talk.push()
    look = {path: (path.lstat().st_mtime_ns, path.lstat().st_ctime_ns) for path in (talk.live, *talk.live.rglob("*"))}
    talk.ask("verify")
    assert {path: (path.lstat().st_mtime_ns, path.lstat().st_ctime_ns) for path in (talk.live, *talk.live.rglob("*"))} == look


def test_a_file_is_compiled_and_not_run(talk: Talk) -> None:
    talk.write("a.py", f"open({str(talk.home / 'ran')!r}, 'w')\n".encode())
    verify(talk)
    assert not (talk.home / "ran").exists()


def test_modules_beside_the_files_are_not_imported(talk: Talk) -> None:
    talk.write("json.py", b"raise SystemExit('imported')\n")
    talk.write_live("json.py", b"raise SystemExit('imported')\n# old\n")
    assert verify(talk).files == 1


def test_a_fault_leaves_nothing_behind(talk: Talk) -> None:
    talk.write("a.py", b"def (\n")
    with pytest.raises(RefusedError):
        verify(talk)
    talk.close()
    assert os.listdir(talk.live) == []


def test_files_that_did_not_change_are_not_compiled_again(talk: Talk) -> None:
    talk.write("a.py", b"def (\n")
    talk.write_live("a.py", b"def (\n")
    assert verify(talk).files == 0


# --- whose python


def test_the_python_of_a_script_is_that_of_its_first_line(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text(f"#!{sys.executable}\n")
    script.chmod(0o755)
    talk = Talk(tmp_path, command=(str(script),))
    talk.write("a.py", b"x = 1\n")
    assert verify(talk).interpreter == sys.executable
    talk.close()


def test_a_program_that_is_no_python_leaves_the_systems_one(tmp_path: Path) -> None:
    talk = Talk(tmp_path, command=("/bin/sh", "-c", "exec python3 a.py"))
    talk.write("a.py", b"x = 1\n")
    assert verify(talk).interpreter == PYTHON
    talk.close()


def test_an_interpreter_that_breaks_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "python3"
    shutil.copy("/bin/false", broken)
    talk = Talk(tmp_path, command=(str(broken), "a.py"))
    talk.write("a.py", b"x = 1\n")
    error = refused(lambda: verify(talk))
    assert isinstance(error, AgentError)
    assert error.where == f"here: verify: {broken}"
    assert "it ended with 1" in error.what
    talk.close()


def test_no_python_at_all_is_refused(tmp_path: Path) -> None:
    talk = Talk(tmp_path, command=("/bin/true",), environment={"PATH": str(tmp_path)})
    talk.write("a.py", b"x = 1\n")
    error: DeployError = refused(lambda: verify(talk))
    assert isinstance(error, RefusedError)
    assert error.what == f"there is no python3 to compile with in PATH {tmp_path}"
    talk.close()
    assert not (talk.live / ".deployctl" / RUN).exists()
