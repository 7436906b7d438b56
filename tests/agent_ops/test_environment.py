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
