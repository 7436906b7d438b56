from __future__ import annotations

import pytest

from deployctl.agent import match

MATCHING = [
    "python3 train.py",
    "/usr/bin/python3.11 -u -X dev -W ignore train.py --lr 1",
    "python -Xdev -Wignore -uB src/train.py",
    "python3.13t ./train.py",
    "pypy3 train.py",
    "python -- train.py",
    "python --check-hash-based-pycs never train.py",
    "bash train.py",
    "sh -eu train.py",
    "bash -euo pipefail train.py",
    "bash --rcfile x +o posix train.py",
    "perl -w -I lib train.py",
    "ruby -rset train.py",
    "node --require x train.py",
    "/opt/bin/train.py --fast",
]
STRANGERS = [
    "vim train.py",
    "tail -f train.py.log",
    "tail -f train.py",
    "grep train.py",
    "python3 my_train.py",
    "python3 train.py.bak",
    "python3 other.py train.py",
    "python3 -m pytest train.py",
    "python3 -W train.py other.py",
    "python3 - train.py",
    "bash -s train.py",
    "node -e 1 train.py",
    "perl -ne 1 train.py",
    "torchrun train.py",
    "sudo python3 train.py",
]


@pytest.mark.parametrize("line", MATCHING)
def test_the_script_of_an_interpreter_matches(line: str) -> None:
    assert match.matches("train.py", line.split(), "x")


@pytest.mark.parametrize("line", STRANGERS)
def test_a_line_that_only_mentions_the_script_does_not_match(line: str) -> None:
    assert not match.matches("train.py", line.split(), "x")


CODE = [["python3", "-c", "import train.py"], ["bash", "-c", "python3 train.py"], ["python3", "-Ic", "x", "train.py"]]


@pytest.mark.parametrize("argv", CODE)
def test_code_on_the_line_does_not_match(argv: list[str]) -> None:
    assert not match.matches("train.py", argv, "x")


@pytest.mark.parametrize("argv", [["python", "-m", "pkg.mod"], ["python", "-mpkg.mod"], ["python", "-um", "pkg.mod", "--lr", "1"]])
def test_a_module_matches_as_a_whole_only(argv: list[str]) -> None:
    assert match.matches("pkg.mod", argv, "x")
    assert not match.matches("mod", argv, "x")


def test_a_path_matches_as_a_whole() -> None:
    assert match.matches("src/train.py", ["python", "./src/train.py"], "x")
    assert not match.matches("rc/train.py", ["python", "src/train.py"], "x")


def test_an_interpreter_with_a_name_of_its_own_choice_is_known_by_its_comm() -> None:
    assert match.matches("train.py", ["my train", "train.py"], "python3")


def test_a_title_of_ours_and_an_empty_line_match_nothing() -> None:
    title = ["deployctl: job of train.py (run 1)", "", ""]
    assert not match.matches("train.py", title, "deployctl")
    assert not match.matches("train.py", [], "train.py")


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("python3 -u src/train.py --lr 1", "train.py"),
        ("python3 -m pkg.mod --lr 1", "pkg.mod"),
        ("env A=1 -u B nice -n 5 nohup python3 train.py", "train.py"),
        ("/opt/bin/serve --port 1", "serve"),
        ("bash run.sh", "run.sh"),
        ("./run.sh", "run.sh"),
    ],
)
def test_a_command_is_known_by_its_script_or_program(command: str, text: str) -> None:
    assert match.derive(command.split()) == text
    assert match.known_by({"command": command.split(), "match": None})["match"] == text


def test_what_is_said_wins_over_what_is_derived() -> None:
    assert match.known_by({"command": ["python3", "a.py"], "match": "b.py"})["match"] == "b.py"
