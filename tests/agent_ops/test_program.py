"""Where a command leads: the file, its interpreter, its virtual environment; and what the kernel would refuse is refused before."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import Any

import pytest

from deployctl.agent import program
from deployctl.agent.faults import Refused
from tests.agent_ops import write


@pytest.fixture
def home(tmp_path: Any) -> str:
    return str(tmp_path)


def executable(path: str, content: bytes = b"#!/bin/sh\n") -> str:
    write(path, content)
    os.chmod(path, 0o755)
    return path


def venv(home: str, name: str = "venv") -> str:
    """A virtual environment as python makes one: a link to the interpreter, and pyvenv.cfg above it."""
    write(os.path.join(home, name, "pyvenv.cfg"), b"home = /usr/bin\n")
    python = os.path.join(home, name, "bin", "python3")
    os.makedirs(os.path.dirname(python))
    os.symlink(os.path.realpath(sys.executable), python)
    return python


def find(word: str, directory: str, path: str = "/usr/bin:/bin") -> program.Program:
    return program.find([word, "a.py"], {"PATH": path}, directory)


# --- locate


def test_a_bare_word_is_looked_for_in_the_path_in_order(home: str) -> None:
    second = executable(home + "/two/tool")
    assert program.locate("tool", home + "/one:" + home + "/two", "/") == second
    first = executable(home + "/one/tool")
    assert program.locate("tool", home + "/one:" + home + "/two", "/") == first


def test_what_cannot_be_executed_and_a_directory_are_passed_over(home: str) -> None:
    write(home + "/one/tool", b"")
    os.makedirs(home + "/two/tool")
    third = executable(home + "/three/tool")
    assert program.locate("tool", ":".join(home + part for part in ("/one", "/two", "/three")), "/") == third


@pytest.mark.parametrize("word", ["./tool", "sub/../tool", "{home}/tool"])
def test_a_word_with_a_slash_is_a_path_from_the_directory(home: str, word: str) -> None:
    tool = executable(home + "/tool")
    os.makedirs(home + "/sub")
    assert program.locate(word.format(home=home), "/nowhere", home) == tool


def test_an_empty_part_of_the_path_is_the_directory(home: str) -> None:
    executable(home + "/tool")
    found = program.locate("tool", "/nowhere:", home)
    assert found is not None
    assert os.path.samefile(found, home + "/tool")


@pytest.mark.parametrize("word", ["tool", "./tool", ""])
def test_what_is_not_there_is_none(home: str, word: str) -> None:
    assert program.locate(word, home, home) is None


# --- find


def test_a_program_is_its_own_interpreter(home: str) -> None:
    shutil.copy("/bin/true", home + "/tool")
    assert find("./tool", home) == program.Program(home + "/tool", home + "/tool", None)


def test_a_script_has_the_interpreter_of_its_first_line(home: str) -> None:
    executable(home + "/run", b"#! /bin/sh -e\nexit 0\n")
    assert find("./run", home) == program.Program(home + "/run", "/bin/sh", None)


@pytest.mark.parametrize(
    "line", [b"#!/usr/bin/env tool", b"#!/usr/bin/env -S tool -u", b"#!/usr/bin/env -i A=1 tool", b"#! /usr/bin/env\ttool "]
)
def test_env_looks_in_the_environment_of_the_workload(home: str, line: bytes) -> None:
    tool = executable(home + "/bin/tool")
    executable(home + "/run", line + b"\n")
    assert find("./run", home, home + "/bin").interpreter == tool


@pytest.mark.parametrize("line", [b"#!/bin/sh", b"#!/usr/bin/env sh"])
def test_a_first_line_with_the_line_end_of_another_system_is_refused(home: str, line: bytes) -> None:
    executable(home + "/run", line + b"\r\nexit 0\r\n")
    with pytest.raises(Refused, match="does not exist"):
        find("./run", home)


@pytest.mark.parametrize("line", [b"#!/no/such/interpreter", b"#!/usr/bin/env no-such-interpreter", b"#!", b"#!/usr/bin/env"])
def test_an_interpreter_that_is_not_there_is_refused(home: str, line: bytes) -> None:
    executable(home + "/run", line + b"\n")
    with pytest.raises(Refused) as caught:
        find("./run", home)
    assert caught.value.where == home + "/run"


def test_an_interpreter_that_cannot_be_executed_is_refused(home: str) -> None:
    write(home + "/interpreter", b"")
    executable(home + "/run", b"#!" + home.encode() + b"/interpreter\n")
    with pytest.raises(Refused):
        find("./run", home)


@pytest.mark.parametrize("content", [b"", b"exit 0\n", b"\n#!/bin/sh\n"])
def test_a_text_without_an_interpreter_is_refused(home: str, content: bytes) -> None:
    run = executable(home + "/run", content)
    with pytest.raises(OSError, match="Exec format error"):
        subprocess.run([run], check=False)
    with pytest.raises(Refused):
        find("./run", home)


def test_what_is_not_there_is_refused_with_where_it_was_looked_for(home: str) -> None:
    with pytest.raises(Refused) as caught:
        find("no-such-tool", home, "/usr/bin")
    assert (caught.value.what, caught.value.where) == ("there is no program 'no-such-tool' in PATH /usr/bin", "workload: command")


@pytest.mark.parametrize("kind", ["mode", "directory"])
def test_what_cannot_be_executed_is_refused(home: str, kind: str) -> None:
    if kind == "mode":
        write(home + "/tool", b"#!/bin/sh\n")
    else:
        os.makedirs(home + "/tool")
    with pytest.raises(Refused, match=f"'{home}/tool' cannot be executed"):
        find("./tool", home)


# --- virtual environments


def test_a_python_in_a_virtual_environment_has_its_prefix(home: str) -> None:
    python = venv(home)
    assert find(python, home) == program.Program(python, python, home + "/venv")


def test_a_script_of_a_virtual_environment_has_its_prefix(home: str) -> None:
    python = venv(home)
    executable(home + "/venv/bin/train", b"#!" + python.encode() + b"\n")
    assert find("venv/bin/train", home).prefix == home + "/venv"


def test_a_virtual_environment_is_not_the_python_that_it_was_made_from(home: str) -> None:
    assert find(venv(home), home).identity != find(os.path.realpath(sys.executable), home).identity


def test_two_virtual_environments_of_one_python_are_two(home: str) -> None:
    assert find(venv(home, "a"), home).identity != find(venv(home, "b"), home).identity


def test_two_ways_to_one_virtual_environment_are_one(home: str) -> None:
    python = venv(home)
    os.symlink(home + "/venv", home + "/current")
    assert find(home + "/current/bin/python3", home).identity == find(python, home).identity


def test_two_spellings_of_one_program_are_one(home: str) -> None:
    assert find("sh", home).identity == find("/usr/bin/../bin/sh", home).identity


# --- running


def running(*argv: str, path: str = "/usr/bin:/bin", directory: str = "/", exe: str = "") -> program.Program:
    return program.running(argv, {"PATH": path}, directory, exe)


def test_a_running_python_of_a_virtual_environment_is_known_by_its_argv(home: str) -> None:
    python = venv(home)
    exe = os.path.realpath(sys.executable)
    assert running(python, "a.py", exe=exe) == program.Program(python, python, home + "/venv")
    assert running("python3", "a.py", path=home + "/venv/bin", exe=exe).prefix == home + "/venv"
    assert running("venv/bin/python3", "a.py", directory=home, exe=exe).prefix == home + "/venv"


@pytest.mark.parametrize("argv", [("made up",), (), ("sh",), ("",)])
def test_an_argv_that_does_not_lead_to_the_exe_is_not_believed(home: str, argv: tuple[str, ...]) -> None:
    exe = executable(home + "/real")
    assert running(*argv, exe=exe) == program.Program(exe, exe, None)


def test_a_program_that_was_replaced_by_an_update_is_still_known(home: str) -> None:
    tool = shutil.copy("/bin/true", home + "/tool")
    assert running("tool", path=home, exe=tool + " (deleted)").identity == find("tool", home, home).identity


def test_what_runs_is_what_the_same_command_would_start(home: str) -> None:
    python = venv(home)
    argv = [python, "-c", "import time; print('up', flush=True); time.sleep(600)"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"up\n"
            exe = os.readlink(f"/proc/{process.pid}/exe")
            assert program.running(argv, dict(os.environ), "/", exe).identity == find(python, "/").identity
        finally:
            process.kill()
