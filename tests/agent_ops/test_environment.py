"""The environment of a launched program: declared, and nothing of ours."""

from __future__ import annotations

import os
import pwd

import pytest

from deployctl.agent import environment
from deployctl.agent.faults import Refused

ROOT = environment.User("root", 0, 0, "/root", "/bin/bash")


def test_the_environment_is_the_clean_one() -> None:
    assert environment.clean(ROOT, {}) == {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/root",
        "USER": "root",
        "LOGNAME": "root",
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
    }


def test_nothing_of_our_own_environment_is_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKED", "1")
    monkeypatch.setenv("PATH", "/leaked")
    monkeypatch.setenv("HOME", "/leaked")
    assert "leaked" not in " ".join(environment.clean(ROOT, {}).values()).lower()
    assert "LEAKED" not in environment.clean(ROOT, {})


def test_what_the_playbook_says_wins() -> None:
    found = environment.clean(ROOT, {"PATH": "/opt/bin", "A": "", "LANG": "de_DE.UTF-8"})
    assert (found["PATH"], found["A"], found["LANG"], found["HOME"]) == ("/opt/bin", "", "de_DE.UTF-8", "/root")


def test_what_was_added_is_not_changed() -> None:
    added = {"A": "1"}
    environment.clean(ROOT, added)["B"] = "2"
    assert added == {"A": "1"}


def test_without_a_name_the_user_is_ours() -> None:
    entry = pwd.getpwuid(os.geteuid())
    assert environment.user_of(None) == environment.User(entry.pw_name, entry.pw_uid, entry.pw_gid, entry.pw_dir, entry.pw_shell)


def test_a_named_user_is_that_one() -> None:
    found = environment.user_of("nobody")
    assert (found.name, found.uid) == ("nobody", pwd.getpwnam("nobody").pw_uid)


@pytest.mark.parametrize("name", ["no-such-user", "", "0", "root:x", "ä"])
def test_an_unknown_user_is_refused(name: str) -> None:
    with pytest.raises(Refused) as caught:
        environment.user_of(name)
    assert (caught.value.what, caught.value.where) == (f"there is no user '{name}'", "workload: user")


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone becomes another")
def test_a_user_without_an_entry_has_a_name_and_a_home() -> None:
    answer, tell = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.setuid(54321)
            os.write(tell, repr(tuple(environment.user_of(None))).encode())
        finally:
            os._exit(0)
    os.close(tell)
    with os.fdopen(answer, "rb") as said:
        assert said.read().decode() == repr(("54321", 54321, os.getegid(), "/", "/bin/sh"))
    os.waitpid(pid, 0)


# --- the base


def workload(**changes: object) -> dict[str, object]:
    return {"user": None, "directory": "/", "environment": {}, **changes}


def captured(**names: str) -> dict[str, object]:
    return {"pid": 7, "environment": names}


def test_the_later_source_wins(tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "env").write_text("A=file\nB=file\nTORCH=file\n")
    found = environment.of(
        workload(directory=str(tmp_path), env_file="env", environment={"A": "said"}, implied={"TORCH": "implied", "C": "implied"}), None
    )
    assert (found["A"], found["B"], found["TORCH"], found["C"]) == ("said", "file", "file", "implied")
    assert found["PYTHONUNBUFFERED"] == "1"


def test_what_is_inherited_is_the_old_environment_without_its_session() -> None:
    old = captured(LD_LIBRARY_PATH="/opt", PATH="/opt/bin", SSH_TTY="x", TMUX="x", OLDPWD="/", DEPLOYCTL_RUN="x", HOME="/h")
    found = environment.of(workload(environment_base="inherit", environment={"A": "1"}), old)
    assert found == {"LD_LIBRARY_PATH": "/opt", "PATH": "/opt/bin", "HOME": "/h", "A": "1"}


def test_a_named_user_has_a_home_of_its_own() -> None:
    found = environment.of(workload(environment_base="inherit", user="nobody"), captured(HOME="/root", A="1"))
    assert (found["HOME"], found["USER"], found["A"]) == (pwd.getpwnam("nobody").pw_dir, "nobody", "1")


@pytest.mark.parametrize(
    ("old", "what"),
    [(None, "nothing runs whose environment could be inherited"), (captured(LOCAL_RANK="0"), "process 7 is a rank: ")],
)
def test_what_cannot_be_inherited_is_refused(old: dict[str, object] | None, what: str) -> None:
    with pytest.raises(Refused) as caught:
        environment.of(workload(environment_base="inherit"), old)
    assert caught.value.what.startswith(what)


# --- a file of variables


def test_a_file_gives_its_variables_as_they_stand(tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "env").write_bytes(
        b"# a comment\n\nA=1\nexport B = 2\n".replace(b"B = 2", b"B=2") + b"C='a b'\n D=\"$HOME\" \nE=\nF=x=y#z\nG='\nH=\xff\n"
    )
    found = environment.from_file(str(tmp_path / "env"))
    assert found == {"A": "1", "B": "2", "C": "a b", "D": "$HOME", "E": "", "F": "x=y#z", "G": "'", "H": "\udcff"}


@pytest.mark.parametrize("line", ["TOKEN secret", "1A=secret", "A B=secret", "=secret", "A=se\0cret"])
def test_a_line_that_is_no_variable_is_refused_without_its_text(tmp_path, line: str) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "env").write_text(f"A=1\n{line}\n")
    with pytest.raises(Refused) as caught:
        environment.from_file(str(tmp_path / "env"))
    assert caught.value.where == f"{tmp_path}/env:2"
    assert "cret" not in str(caught.value.as_dict())


def test_a_file_that_is_not_there_is_refused() -> None:
    with pytest.raises(Refused, match="env_file cannot be read: No such file or directory"):
        environment.from_file("/nowhere/env")


# --- what is lost


def test_lost_and_changed_are_names_that_a_program_hears_of() -> None:
    old = {"CUDA_HOME": "/a", "HF_HOME": "/a", "PYTHONPATH": "/a", "LD_LIBRARY_PATH": "/a", "EDITOR": "vi", "PYTHONUNBUFFERED": "1"}
    assert environment.compared(old, {"HF_HOME": "/b", "PYTHONUNBUFFERED": "1"}) == {
        "lost": ["CUDA_HOME", "LD_LIBRARY_PATH", "PYTHONPATH"],
        "changed": ["HF_HOME"],
    }


def test_without_an_old_process_nothing_is_lost() -> None:
    assert environment.compared(None, {"A": "1"}) == {"lost": [], "changed": []}
