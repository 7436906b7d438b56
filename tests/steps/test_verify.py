"""verify: every staged .py file is compiled by the workload's interpreter, in memory; all faults are told at once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deployctl.errors import AgentError, DeployError, RefusedError
from deployctl.steps.verify import Verified, Verify
from tests.steps import RUN, Talk, opened, refusal, refused, said, setting, steps_of, until

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
        ("  - verify: {import: ['a b']}\n", 7, "verify: import[0]: 'a b' is no name of a module", "write it as in an import"),
        ("  - verify: {python: 3}\n", 7, "verify: python: '3' is no version of Python 3", "write for example"),
        ("  - verify: {command: []}\n", 7, "verify: command: there is too little here", "give at least 1"),
        ("  - verify: {within: 11m}\n", 7, "verify: within: it must be more than nothing and at most 10m", "write for example 60s"),
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
    assert [fault.split(": ", 1)[0] for fault in error.what.split("; ")] == ["a.py:2", "sub/b.py:3"]
    assert "in `y = = 2`" in error.what
    assert error.todo.startswith(f"{PYTHON} (3.")


@pytest.mark.parametrize("new", ["def broken(:\n", "# coding: latin-1\nx = 'ä' +\n", "x = 1\n\nreturn 'ä'\n"])
def test_the_line_that_is_quoted_is_that_of_the_new_file(talk: Talk, new: str) -> None:
    talk.write("a.py", new.encode("latin-1" if "latin" in new else "utf-8"))
    talk.write_live("a.py", b"one = 1\ntwo = 2\nthree = 3\n")
    guilty = next(line for line in new.splitlines() if line.startswith(("def", "x = 'ä'", "return")))
    assert f" in `{guilty}`" in refused(lambda: verify(talk)).what


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


def test_an_interpreter_that_dies_of_a_file_leaves_the_other_files_their_turn(tmp_path: Path) -> None:
    """The interpreter is a real one behind a script that makes compile() of one file kill it, as deep nesting did to old ones."""
    fragile = tmp_path / "python3"
    code = "import builtins, os, sys\\nreal = compile\\n"
    code += "builtins.compile = lambda text, name, *more: os.abort() if b'deadly' in text else real(text, name, *more)\\n"
    fragile.write_text(f"#!/bin/sh\nshift 3\nexec {PYTHON} -I -B -c \"$(printf \"{code}\")$(printf '\\n%s' \"$1\")\"\n")
    fragile.chmod(0o755)
    talk = Talk(tmp_path, command=("/bin/true",), environment={"PATH": str(tmp_path)})
    for name, content in {"a.py": b"def (\n", "b.py": b"deadly\n", "c.py": b"x = 1\n", "d.py": b"x = = 1\n"}.items():
        talk.write(name, content)
    error = refused(lambda: verify(talk))
    faults = error.what.split("; ")
    assert [fault.split(":")[0] for fault in faults] == ["a.py", "b.py", "d.py"]
    assert faults[1] == "b.py: the interpreter did not survive it: signal 6"
    talk.close()


def test_many_files_are_compiled_by_an_interpreter_that_is_slow_to_come_up(tmp_path: Path) -> None:
    """Their names are more than a pipe holds."""
    slow = tmp_path / "python3"
    slow.write_text(f'#!/bin/sh\nsleep 0.5\nexec {PYTHON} "$@"\n')
    slow.chmod(0o755)
    talk = Talk(tmp_path, command=("/bin/true",), environment={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    for number in range(400):
        talk.write(f"{'long' * 30}/{number}.py", b"x = 1\n")
    talk.write("bad.py", b"def (\n")
    began = time.monotonic()
    assert refused(lambda: verify(talk)).what.startswith("bad.py:1: ")
    assert time.monotonic() - began < 30
    talk.close()


def test_memory_without_end_is_a_fault_of_the_file(talk: Talk) -> None:
    talk.write("a.py", b"x = (" + b"'%s' * 2, " * 10 + b")\n" + b"y = " + b"(" * 90 + b"b'x' * 1000" + b") * 1000" * 2 + b"\n")
    talk.write("b.py", b"def (\n")
    assert "b.py:1: " in refused(lambda: verify(talk)).what


@pytest.mark.parametrize(
    ("head", "what"),
    [
        (b"#!/bin/sh\r\n", "its first line ends with a carriage return, so its interpreter is not found"),
        (b"\xef\xbb\xbf#!/bin/sh\n", "a byte order mark stands before its '#!', so it cannot be executed"),
    ],
)
def test_a_script_that_the_kernel_cannot_start_is_a_fault(talk: Talk, head: bytes, what: str) -> None:
    talk.write("run.sh", head, mode=0o755)
    talk.write("only-text.sh", head)
    assert refused(lambda: verify(talk)).what == f"run.sh:1: {what}"


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (b"x = 1\ny = 2\n", b"", "it is empty, and was not (12 bytes)"),
        (b"x = 1\ny = 2\n", b"x = 1\n", "it is no more than the first 6 of the old one's 12 bytes"),
        (b"x = 1\ny = 2\n", b"y = 2\n", None),
        (b"", b"", None),
    ],
)
def test_a_file_that_may_have_been_cut_short_is_warned_of(talk: Talk, old: bytes, new: bytes, what: str | None) -> None:
    talk.write("a.py", new)
    talk.write_live("a.py", old)
    verify(talk)
    assert said(talk.events, "verified")[0]["warnings"] == ([{"path": "a.py", "what": what}] if what else [])


# --- the tree as it will be


def tried(talk: Talk, **fields: Any) -> Any:
    """What imports and command find, the workload's directory being the destination."""
    talk.push(include=["*.py"], delete=True)
    return Verify.model_validate({"within": "30s", **fields}).prepare(None, talk.session, setting(), opened(), talk.record)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Talk]:
    """A workload in its destination: a package of which one module is new, one stays, one goes."""
    talk = Talk(tmp_path, directory=str(tmp_path / "live"))
    for name, content in {"pkg/__init__.py": b"", "pkg/stays.py": b"X = 'stays'\n", "pkg/new.py": b"X = 'old'\n"}.items():
        talk.write_live(name, content)
    talk.write_live("pkg/gone.py")
    talk.write_live("data.txt", b"data")
    (talk.live / "__pycache__").mkdir()
    for name, content in {"pkg/__init__.py": b"", "pkg/stays.py": b"X = 'stays'\n", "pkg/new.py": b"X = 'new'\n"}.items():
        talk.write(name, content)
    yield talk
    talk.close()


LOOK = b"""import importlib.util, os, pkg.new, pkg.stays
assert (pkg.new.X, pkg.stays.X, open('data.txt').read()) == ('new', 'stays', 'data')
assert importlib.util.find_spec('pkg.gone') is None
assert os.environ['CUDA_VISIBLE_DEVICES'] == ''
"""


def test_a_module_is_imported_in_the_tree_as_it_will_be(site: Talk) -> None:
    site.write("look.py", LOOK)
    before = {path: path.lstat().st_ctime_ns for path in site.live.rglob("*") if ".deployctl" not in path.parts}
    assert tried(site, **{"import": ["look", "pkg.new"]}).interpreter == PYTHON
    assert {path: path.lstat().st_ctime_ns for path in site.live.rglob("*") if ".deployctl" not in path.parts} == before
    assert sorted(os.listdir(site.live / ".deployctl" / RUN)) == ["about.json", "new"]


def test_every_import_that_fails_is_named_with_its_reason(site: Talk) -> None:
    site.write("one.py", b"import no_such_module\n")
    site.write("two.py", b"raise SystemExit(3)\n")
    error = refused(lambda: tried(site, **{"import": ["one", "pkg.new", "two"]}))
    assert error.what.split("; ") == [
        "import one: status 1: ModuleNotFoundError: No module named 'no_such_module'", "import two: status 3",
    ]  # fmt: skip


def test_a_command_runs_in_the_tree_as_it_will_be(site: Talk) -> None:
    site.write("look.py", LOOK)
    tried(site, command=["python3", "look.py"])
    assert said(site.events, "verified")[0]["command"] == ["python3", "look.py"]
    step = Verify(command=["sh", "-c", "echo not so; exit 5"])
    error = refused(lambda: step.prepare(None, site.session, setting(), opened(), site.record))
    assert error.what == "command sh: status 5: not so"


def test_a_command_without_end_ends_at_its_deadline_and_nothing_of_it_is_left(site: Talk) -> None:
    began = time.monotonic()
    error = refused(lambda: tried(site, command=["sh", "-c", "echo $$; sleep 600 & sleep 600"], within="1s"))
    assert time.monotonic() - began < 15
    said_, _, group = error.what.rpartition(": ")
    assert said_ == "command sh: no end within its time"
    until("the whole group is gone", lambda: not alive(int(group)))


def test_a_command_that_never_stops_talking_ends_at_its_deadline(site: Talk) -> None:
    began = time.monotonic()
    assert refused(lambda: tried(site, command=["yes"], within="1s")).what == "command yes: no end within its time: y"
    assert time.monotonic() - began < 15


def alive(group: int) -> list[str]:
    """The processes of a process group, without those that only wait to be buried."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            state, _, pgrp = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        found += [name] if int(pgrp) == group and state != "Z" else []
    return found


@pytest.fixture
def open_home() -> Iterator[Path]:
    """A directory that every user can reach: those of pytest are private."""
    with tempfile.TemporaryDirectory(prefix="deployctl-test-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_checks_run_as_the_user_of_the_workload(open_home: Path) -> None:
    talk = Talk(open_home, directory=str(open_home / "live"), user="nobody")
    talk.write("who.py", b"import os, pwd\nassert pwd.getpwuid(os.getuid()).pw_name == 'nobody'\nassert 0 not in os.getgroups()\n")
    talk.push()
    Verify.model_validate({"import": ["who"]}).prepare(None, talk.session, setting(), opened(), talk.record)
    assert (talk.live / ".deployctl").stat().st_mode & 0o777 == 0o700
    talk.close()


def test_another_python_than_the_expected_one_is_refused(talk: Talk) -> None:
    talk.write("a.py", b"x = 1\n")
    talk.push()
    version = said_version()
    Verify(python=version.rpartition(".")[0]).prepare(None, talk.session, setting(), opened(), talk.record)
    error = refused(lambda: Verify(python="3.1").prepare(None, talk.session, setting(), opened(), talk.record))
    assert error.what == f"{PYTHON} is Python {version}, the playbook expects 3.1"


def said_version() -> str:
    done = subprocess.run([PYTHON, "-c", "import platform; print(platform.python_version())"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


# --- old compiled code


@pytest.mark.parametrize("back", [False, True])
def test_no_compiled_file_of_the_old_source_wins_over_the_new_one(talk: Talk, back: bool) -> None:
    """Same size, same second: by itself Python would run the old code."""
    old = talk.write_live("v.py", b"V = 1\n")
    talk.write("v.py", b"V = 2\n")
    piece = talk.push()
    staged = talk.staged("v.py").stat().st_mtime
    os.utime(old, (staged, staged))
    show = [PYTHON, "-c", f"import sys; sys.path.insert(0, {str(talk.live)!r}); import v; print(v.V)"]
    assert subprocess.run(show, capture_output=True, text=True, check=True, env={}).stdout == "1\n"
    assert list((talk.live / "__pycache__").iterdir())
    talk.golive(piece)
    assert subprocess.run(show, capture_output=True, text=True, check=True, env={}).stdout == "2\n"
    if back:
        talk.goback(piece)
        assert subprocess.run(show, capture_output=True, text=True, check=True, env={}).stdout == "1\n"


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
