from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from deployctl.errors import WordsError
from deployctl.flags import declared
from deployctl.playbook import PHASES, load
from deployctl.playbooks import find, peek, search_path
from deployctl.steps.registry import KINDS

PLAYBOOKS = Path(__file__).parent.parent / "playbooks"
WORKLOAD = "workload:\n  name: train\n  directory: /root/a\n  command: [python3, train.py, --lr, 1e-4]\n  log: train.log\n"
STEPS = "steps:\n  - stop: [INT 5s]\n  - launch\n"


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(content: str) -> Path:
        path = tmp_path / "restart.yaml"
        path.write_text(content)
        return path

    return write


def refusal(path: Path) -> WordsError:
    with pytest.raises(WordsError) as caught:
        load(path)
    assert caught.value.exit_status == 2
    return caught.value


@pytest.mark.parametrize("path", sorted(PLAYBOOKS.glob("*.yaml")), ids=lambda path: path.name)
def test_every_example_loads(path):
    assert load(path).model.description


def test_the_restart_example_is_what_its_file_says():
    playbook = load(PLAYBOOKS / "restart.yaml")
    assert playbook.name == "restart"
    assert playbook.model.workload.command[2:4] == ("--token-budget", "49152")
    assert [step.word for step in playbook.model.steps] == ["push", "verify", "stop", "launch", "check"]
    assert [(flag.name, flag.type, flag.min) for flag in playbook.flags] == [("profile-interval", "int", 0)]
    assert playbook.model.on_failure == "rollback"


def test_numbers_of_a_command_and_an_environment_are_as_written(write):
    content = WORKLOAD.replace("1e-4", "0.10") + "  environment: {OMP_NUM_THREADS: 4, RATE: 1.50, DEBUG: true, CODE: 007}\n" + STEPS
    workload = load(write(content)).model.workload
    assert workload.command == ("python3", "train.py", "--lr", "0.10")
    assert workload.environment == {"OMP_NUM_THREADS": "4", "RATE": "1.50", "DEBUG": "true", "CODE": "007"}


def test_a_step_is_a_bare_word_or_a_map_of_one_key(write):
    steps = load(write(WORKLOAD + "steps:\n  - stop\n  - launch:\n")).model.steps
    assert [step.word for step in steps] == ["stop", "launch"]


@pytest.mark.parametrize(
    ("steps", "where", "what", "todo"),
    [
        ("  - stpo\n", 7, "'stpo' is no kind of step", "did you mean 'stop'?"),
        ("  - launch\n  - lunch: {}\n", 8, "'lunch' is no kind of step", "did you mean 'launch'?"),
        ("  - stop:\n    - INT 180s\n    - TREM 30s\n", 9, "stop: ladder[1]: 'TREM' is no signal", "did you mean 'TERM'?"),
        ("  - stop: [INT]\n", 7, "stop: ", "INT 180s"),
        ("  - stop\n  - verify: py_compile\n", 8, "verify: a prepare step cannot stand after 'stop', a cutover step", "before line 7"),
        ("  - stop\n  - launch\n  - stop\n", 9, "stop: it stands here already, in line 7", "keep one"),
        ("  - launch\n  - launch\n", 8, "launch: it stands here already, in line 7", "keep one"),
        ("  - push:\n    from: a\n", 7, "steps[0]: a step has one word, not 2: push, from", "deeper"),
        ("  - push:\n      fom: ../train\n      to: /root/a\n", 8, "push: 'fom' is no key of push", "did you mean 'from'?"),
        ("  - push: {from: a}\n", 7, "push: 'to' is missing", "add 'to: …'"),
        ("  - 5\n", 7, "steps[0]: this is no step", "'- launch'"),
        ("  - [launch]\n", 7, "steps[0]: this is no step", "'- launch'"),
        ("  - {}\n", 7, "steps[0]: this is no step", "'- launch'"),
        ("  - launch: {wait: 5s}\n", 7, "launch: 'wait' is no key of launch", ""),
        ("  launch: {}\n", 6, "steps: wants a list, not a map", "a list"),
        ("  []\n", 6, "steps: the list is empty", "at least one"),
        ("  \n", 6, "steps: wants a list, not nothing", "a list"),
    ],
)
def test_a_faulty_step_names_its_line(write, steps, where, what, todo):
    error = refusal(write(WORKLOAD + "steps:\n" + steps))
    assert error.where == f"restart.yaml:{where}"
    assert error.what.startswith(what)
    assert todo in error.todo


@pytest.mark.parametrize("word", [word for word, kind in KINDS.items() if kind.needs_log])
def test_a_step_that_needs_a_log_wants_one(write, word):
    error = refusal(write(WORKLOAD.replace("  log: train.log\n", "") + f"steps:\n  - {word}\n"))
    assert (error.where, error.what) == ("restart.yaml:6", f"{word}: the workload has no log")


def test_every_kind_of_step_has_a_known_phase():
    assert {kind.phase for kind in KINDS.values()} <= set(PHASES)


@pytest.mark.parametrize(
    ("old", "new", "where", "what", "todo"),
    [
        ("name: train", "name: -train", 2, "workload: name: '-train' is no name", "letter or digit"),
        ("directory: /root/a", "directory: a", 3, "workload: directory: 'a' is no absolute path", "whole path"),
        ("  directory: /root/a\n", "", 1, "workload: 'directory' is missing", "add 'directory: …'"),
        ("command: [python3, train.py, --lr, 1e-4]", "command: []", 4, "workload: command: there is no program", "as a list"),
        ("command: [python3, train.py, --lr, 1e-4]", "command: python3 x", 4, "workload: command: wants a list, not 'python3 x'", "a list"),
        ("command: [python3, ", "comand: [python3, ", 4, "workload: 'comand' is no key of workload", "did you mean 'command'?"),
        ("--lr, 1e-4", "--lr: x", 4, "workload: command[2]: wants a text, not a map", "in quotes"),
        ("log: train.log", "log: ''", 5, "workload: log: the text is empty", "remove the key"),
        ("log: train.log", "environment: {A-B: 1}", 5, "workload: environment: A-B: 'A-B' is no name of a variable", "letters"),
        ("log: train.log", "environment: {A: }", 5, "workload: environment: A: nothing stands here", "in quotes"),
        ("steps:", "on_failure: rolback\nsteps:", 6, "on_failure: 'rolback' is not 'rollback' or 'leave'", "did you mean 'rollback'?"),
        ("steps:", "flag: {}\nsteps:", 6, "'flag' is no key of playbook", "did you mean 'flags'?"),
        ("steps:", "step:", 6, "'step' is no key of playbook", "did you mean 'steps'?"),
        ("steps:", "flags:\n  a:\n    type: itn\nsteps:", 8, "flags: a: type: 'itn' is not", "did you mean 'int'?"),
        ("steps:", "flags:\n  a: {mni: 1}\nsteps:", 7, "flags: a: 'mni' is no key of flag", "did you mean 'min'?"),
        ("steps:", "flags:\n  a: {type: int, min: x}\nsteps:", 7, "flags: a: min: 'x' is no whole number", "digits"),
        ("steps:", "flags:\n  a: int\nsteps:", 7, "flags: a: wants a map of keys and values, not 'int'", "a map"),
    ],
)
def test_a_faulty_playbook_names_its_line(write, old, new, where, what, todo):
    error = refusal(write((WORKLOAD + STEPS).replace(old, new)))
    assert error.where == f"restart.yaml:{where}"
    assert error.what.startswith(what)
    assert todo in error.todo


def test_a_value_of_the_environment_stands_in_no_error(write):
    error = refusal(write(WORKLOAD + "  environment: {TOKEN: hunter2, B: {hunter2: hunter2}}\n" + STEPS))
    assert "hunter2" not in f"{error} {error.todo} {error.__cause__}"


@pytest.fixture
def user_config(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "deployctl" / "playbooks"


def test_playbooks_are_looked_for_here_and_in_the_users_directory(tmp_path, user_config):
    assert search_path({}, tmp_path) == (tmp_path / "playbooks", user_config)


def test_the_variable_names_the_only_directories(tmp_path, user_config):
    assert search_path({"DEPLOYCTL_PLAYBOOKS": "a::/b"}, tmp_path) == (tmp_path / "a", Path("/b"))


def test_of_two_playbooks_with_one_name_the_first_wins(tmp_path):
    for name in ("a/x.yaml", "b/x.yaml", "b/y.yml", "b/.hidden.yaml", "b/-z.yaml", "b/notes.txt", "b/d.yaml/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert find((tmp_path / "none", tmp_path / "a", tmp_path / "b")) == {"x": tmp_path / "a/x.yaml", "y": tmp_path / "b/y.yml"}


def test_a_peek_sees_description_and_flags(write):
    seen = peek(write("description: Restart\nflags: {a: {type: int}}\nsteps: nonsense\n"))
    assert (seen.description, seen.fault) == ("Restart", "")
    assert [flag.name for flag in declared(seen.flags)] == ["a"]


@pytest.mark.parametrize("content", ["a: [", "- a", "", "flags: {a: {type: itn}}", "flags: {a: 1}", "flags: {a: {choices: 5}}"])
def test_a_peek_at_a_broken_file_says_so_and_raises_nothing(write, content):
    seen = peek(write(content))
    assert seen.fault
    assert seen.flags == {}


def test_a_peek_at_nothing_says_so(tmp_path):
    assert "no such file" in peek(tmp_path / "none.yaml").fault


def test_a_peek_does_not_import_pydantic():
    code = "import sys, pathlib, deployctl.playbooks as p; print(p.peek(pathlib.Path(sys.argv[1])).fault, 'pydantic' in sys.modules)"
    argv = [sys.executable, "-c", code, str(PLAYBOOKS / "restart.yaml")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.stdout == " False\n", done.stderr


# --- flags in their workload


@pytest.mark.parametrize(
    ("workload", "flag", "what"),
    [
        ("", "{spelling: lr}", "flags: a: 'lr' is not written as the others"),
        ("style: keyval", "{spelling: --lr}", "flags: a: '--lr' is not written as the others"),
        ("style: keyval", "{nargs: 2}", "flags: a: a key=value has one value"),
        ("style: keyval", "{type: bool, off: --no-a}", "flags: a: '--no-a' is not written as the others"),
        ("wrapper_flags: [a]", "{env: A}", "flags: a: a variable is no flag of the wrapper"),
        ("wrapper_flags: [b]", "{}", "'b' is no flag of the playbook"),
        ("program: x.py", "{}", "the command has no word 'x.py'"),
        ("", "{default: {x: y}}", "flags: a: default: wants a single value"),
    ],
)
def test_a_flag_that_has_no_place_in_the_command_is_told(tmp_path: Path, workload: str, flag: str, what: str) -> None:
    path = tmp_path / "restart.yaml"
    head = "workload:\n  name: t\n  directory: /\n  command: [t]\n  log: a.log\n"
    path.write_text(f"{head}  {workload}\nflags:\n  a: {flag}\nsteps: [launch]\n")
    with pytest.raises(WordsError, match=re.escape(what)) as caught:
        load(path)
    assert "restart.yaml:" in caught.value.where


def test_a_keyval_workload_has_options_too(tmp_path: Path) -> None:
    path = tmp_path / "restart.yaml"
    flags = "  lr: {type: float, spelling: +optimizer.lr}\n  config-name: {style: option}\n"
    head = "workload: {name: t, directory: /, command: [t, a=1], log: a.log, style: keyval}\n"
    path.write_text(f"{head}flags:\n{flags}steps: [launch]\n")
    loaded = load(path)
    assert loaded.shape.style == "keyval"
    assert [flag.spelling for flag in loaded.flags] == ["+optimizer.lr", ""]
