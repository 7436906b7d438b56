"""The command line as a person meets it: real processes, their words, their exit status."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deployctl import __version__

GOOD: dict[str, Any] = {
    "description": "Restart the training",
    "workload": {"name": "train", "directory": "/", "command": ["sh", "no-such-script-of-test-cli.sh"], "log": "/tmp/a.log"},
    "flags": {"profile-interval": {"type": "int", "min": 0, "max": 600, "help": "seconds between reports"}},
    "steps": ["launch"],
}


class Home:
    """A working directory with playbooks and a hosts file, and the command in it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        (home / "playbooks").mkdir()
        (home / "home").mkdir()
        self.hosts = {"targets": {"here": {"local": True, "state": str(home / "state")}}}
        (home / "hosts.yaml").write_text(json.dumps(self.hosts))
        self.playbook("restart", GOOD)

    def playbook(self, name: str, content: dict[str, Any] | str) -> None:
        """A playbook as data, or as the text of its file."""
        text = content if isinstance(content, str) else json.dumps(content)
        (self.home / "playbooks" / f"{name}.yaml").write_text(text)

    def flags(self, **flags: dict[str, Any]) -> None:
        """The playbook `restart` with these flags."""
        self.playbook("restart", {**GOOD, "flags": {name.replace("_", "-"): flag for name, flag in flags.items()}})

    def run(self, *words: str, python: tuple[str, ...] = (), **environment: str) -> subprocess.CompletedProcess[str]:
        """Runs deployctl in it."""
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        surroundings = {**kept, "HOME": str(self.home / "home"), "TERM": "dumb", "COLUMNS": "120", "LANG": "C.UTF-8", **environment}
        argv = [sys.executable, *python, "-m", "deployctl", *words]
        return subprocess.run(argv, cwd=self.home, env=surroundings, capture_output=True, text=True, timeout=60, check=False)

    def help(self, *words: str) -> str:
        """A help page as one text: boxes, line breaks and runs of spaces are taken out."""
        done = self.run(*words, "--help")
        assert (done.returncode, done.stderr) == (0, "")
        return " ".join(re.sub(r"[│╭╮╰╯─|+]", " ", done.stdout).split())

    def plan(self, *words: str) -> Any:
        """What `restart here --plan --json` prints."""
        at = words.index("--") if "--" in words else len(words)
        done = self.run("restart", "here", *words[:at], "--plan", "--json", *words[at:])
        return json.loads(done.stdout)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A working directory with one good playbook and this machine as a target."""
    return Home(tmp_path)


# --- the front page


def test_the_version_is_that_of_the_package(home: Home) -> None:
    done = home.run("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"deployctl {__version__}\n", "")


def test_help_lists_the_playbooks_with_their_descriptions(home: Home) -> None:
    home.playbook("stop-all", {**GOOD, "description": "Stop it for the night"})
    said = home.help()
    assert "restart Restart the training" in said
    assert "stop-all Stop it for the night" in said
    assert "status" in said


@pytest.mark.parametrize("words", [(), ("hosts",)])
def test_without_words_the_help_is_all_that_is_said(home: Home, words: tuple[str, ...]) -> None:
    done = home.run(*words)
    assert (done.returncode, done.stderr) == (2, "")
    assert "Usage: deployctl" in done.stdout


BROKEN = ["a: [", "", "- a\n", "flags: {a: {type: itn}}\n", "\x00", "description: 5\nflags: []\nsteps: 1\n", "\tx: 1\n"]


@pytest.mark.parametrize("content", BROKEN)
def test_help_survives_a_broken_playbook(home: Home, content: str) -> None:
    home.playbook("broken", content)
    said = home.help()
    assert "restart Restart the training" in said
    assert "broken" in said


def test_help_survives_a_playbook_that_is_no_utf_8(home: Home) -> None:
    (home.home / "playbooks" / "broken.yaml").write_bytes(b"description: caf\xe9\n")
    assert "restart Restart the training" in home.help()


@pytest.mark.parametrize("content", ["a: [", "flags: {a: {type: itn}}\n", "steps: [stpo]\n"])
def test_a_broken_playbook_tells_its_fault_when_it_is_called(home: Home, content: str) -> None:
    home.playbook("broken", content)
    done = home.run("broken", "here")
    assert done.returncode == 2
    assert done.stderr.startswith("error: playbooks/broken.yaml:1: ")
    assert "Traceback" not in done.stderr


def test_help_without_playbooks_and_hosts_works(tmp_path: Path) -> None:
    home = Home(tmp_path)
    for path in (*(tmp_path / "playbooks").iterdir(), tmp_path / "hosts.yaml"):
        path.unlink()
    assert "status" in home.help()


@pytest.mark.parametrize("words", [("--help",), ("--version",)])
def test_help_imports_no_heavy_library(home: Home, words: tuple[str, ...]) -> None:
    done = home.run(*words, python=("-X", "importtime"))
    imported = {row.split("|")[-1].strip() for row in done.stderr.splitlines() if row.startswith("import time:")}
    assert done.returncode == 0
    assert "deployctl.cli.main" in imported
    assert imported & {"fabric", "paramiko", "pydantic", "pydantic_core", "cryptography", "pathspec"} == set()


# --- a playbook's page


def test_the_page_of_a_playbook_shows_its_flags_with_their_bounds(home: Home) -> None:
    said = home.help("restart")
    assert "Restart the training" in said
    assert "--profile-interval INT seconds between reports [0..600]" in said
    assert "--plan" in said


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ({"type": "int", "min": 1}, "INT [1..]"),
        ({"type": "float", "max": 0.5, "default": 0.25}, "FLOAT [..0.5; default 0.25]"),
        ({"type": "choice", "choices": ["small", "large"], "help": "how much"}, "how much"),
        ({"type": "duration", "default": "90s"}, "DURATION [default 90s]"),
        ({"type": "bool", "help": "be quick"}, "--no-x"),
    ],
)
def test_a_flag_says_what_it_takes(home: Home, flag: dict[str, Any], said: str) -> None:
    home.flags(x=flag)
    page = home.help("restart")
    assert "--x" in page
    assert said in page


def test_the_choices_of_a_flag_are_shown(home: Home) -> None:
    home.flags(size={"type": "choice", "choices": ["small", "large"]})
    assert re.search(r"--size \[?small ?large\]?", home.help("restart"))


@pytest.mark.parametrize(
    "words",
    ["seconds [s] between", "[bold]not bold[/bold]", "a[0] and [/] and [/x]", "[red", "C:\\[x]", ":smile: *x* `y` __z__", "100 % {x}"],
)
def test_brackets_of_a_playbook_are_shown_as_they_are(home: Home, words: str) -> None:
    home.playbook("restart", {**GOOD, "description": f"about {words}", "flags": {"x": {"help": f"flag {words}"}}})
    assert f"about {words}" in home.help()
    assert f"about {words}" in home.help("restart")
    assert f"flag {words}" in home.help("restart")


def test_a_playbook_cannot_write_to_the_terminal(home: Home) -> None:
    home.playbook("restart", {**GOOD, "description": "a\x1b[31mb\u009bc"})
    said = home.run("--help").stdout + home.run("restart", "--help").stdout
    assert {character for character in said if not character.isprintable()} <= {"\n"}


@pytest.mark.parametrize("own", ["plan", "json"])
def test_a_flag_of_a_playbook_cannot_take_the_place_of_our_own(home: Home, own: str) -> None:
    home.flags(**{own: {"type": "bool"}})
    done = home.run("restart", "here", "--plan")
    assert done.returncode == 2
    assert f"'{own}'" in done.stderr or f"--{own}" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_playbook_with_the_name_of_a_command_does_not_vanish_in_silence(home: Home) -> None:
    home.playbook("status", {**GOOD, "description": "A playbook of that name"})
    done = home.run("--help")
    assert "A playbook of that name" in done.stdout or "status" in done.stderr


# --- words


def test_a_flag_meets_the_command(home: Home) -> None:
    command = home.plan("--profile-interval", "60")["workload"]["command"]
    assert command == ["sh", "no-such-script-of-test-cli.sh", "--profile-interval=60"]


def test_the_words_after_two_dashes_are_flags_of_the_workload(home: Home) -> None:
    plan = home.plan("--profile-interval", "60", "--", "--batch=8", "--plan", "--help")
    assert [word for word in plan["workload"]["command"] if word.startswith("--")] == [
        "--profile-interval=60",
        "--batch=8",
        "--plan",
        "--help",
    ]


def test_a_second_pair_of_dashes_is_no_flag(home: Home) -> None:
    done = home.run("restart", "here", "--plan", "--", "--a=1", "--")
    assert done.returncode == 2
    assert "'--' is no flag" in done.stderr


@pytest.mark.parametrize("word", ["ct201", "8", "-", ""])
def test_a_target_after_two_dashes_is_refused(home: Home, word: str) -> None:
    done = home.run("restart", "here", "--", word)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: --: '{word}' is no flag\n   do: write undeclared flags as '--flag=value' or '--flag'\n"


def test_an_undeclared_flag_before_the_dashes_is_refused(home: Home) -> None:
    done = home.run("restart", "here", "--batch", "8")
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "--batch" in done.stderr


@pytest.mark.parametrize(
    ("words", "what", "todo"),
    [
        (["--profile-interval", "601"], "--profile-interval: '601' is above 600", "give 0 to 600"),
        (["--profile-interval", "1.5"], "--profile-interval: '1.5' is no whole number", "digits"),
        (["--profile-interval", ""], "--profile-interval: '' is no whole number", "digits"),
        (["--profile-interval"], "", "--help"),
    ],
)
def test_a_value_out_of_bounds_ends_before_anything_is_contacted(home: Home, words: list[str], what: str, todo: str) -> None:
    done = home.run("restart", "here", *words)
    assert done.returncode == 2
    assert what in done.stderr
    assert todo in done.stderr
    assert not (home.home / "state").exists()


def test_a_negative_value_is_a_value(home: Home) -> None:
    home.flags(x={"type": "int"})
    assert "--x=-5" in home.plan("--x", "-5")["workload"]["command"]


@pytest.mark.parametrize(("word", "expected"), [("--fast", ["--fast"]), ("--no-fast", [])])
def test_a_switch_is_set_or_taken_away(home: Home, word: str, expected: list[str]) -> None:
    home.flags(fast={"type": "bool"})
    assert [part for part in home.plan(word)["workload"]["command"] if "fast" in part] == expected


def test_a_plan_prints_what_would_happen_and_leaves_no_trace(home: Home) -> None:
    done = home.run("restart", "here", "--plan")
    assert done.returncode == 0
    assert "plan: restart of train on here; nothing is changed by this" in done.stdout
    assert not (home.home / "state").exists()


def test_a_reader_who_leaves_is_no_error_with_a_traceback(home: Home) -> None:
    argv = f"{sys.executable} -m deployctl restart here --plan | true"
    done = subprocess.run(["sh", "-c", argv], cwd=home.home, capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in done.stderr


def test_an_error_is_on_stderr_alone(home: Home) -> None:
    done = home.run("restart", "nowhere")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: 'nowhere' is no target or group\n   do: ")


# --- flags of several values, names that meet, --unset


def test_a_flag_of_several_values_is_given_once_for_each(home: Home) -> None:
    home.flags(tags={"nargs": "+"}, add={"repeat": "append"})
    command = home.plan("--tags", "a", "--tags", "b c", "--add=x", "--add=y")["workload"]["command"]
    assert command[2:] == ["--tags", "a", "b c", "--add=x", "--add=y"]


def test_a_flag_with_the_name_of_our_option_has_another_one(home: Home) -> None:
    home.flags(wait={"type": "int", "option": "train-wait"})
    assert home.plan("--train-wait", "5")["workload"]["command"][2:] == ["--wait=5"]


def test_a_flag_with_the_name_of_our_option_is_told_with_its_line(home: Home) -> None:
    home.playbook("restart", json.dumps({**GOOD, "flags": {"unset": {}}}, indent=1))
    done = home.run("restart", "here", "--plan")
    assert done.returncode == 2
    assert re.search(r"restart.yaml:\d+: flags: unset: '--unset' is an option of deployctl's own", done.stderr)
    assert "option: train-unset" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--unset", "profil-interval"], "did you mean 'profile-interval'?"),
        (["--unset", "profile-interval", "--profile-interval", "5"], "'profile-interval' is given and unset"),
    ],
)
def test_a_flag_that_cannot_be_unset_is_told(home: Home, words: list[str], said: str) -> None:
    done = home.run("restart", "here", "--plan", *words)
    assert done.returncode == 2
    assert said in done.stderr
