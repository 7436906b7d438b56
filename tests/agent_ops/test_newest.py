"""Which file is taken after the stop: real files, a real process that has one open, a real check."""

from __future__ import annotations

import os
import sys
from typing import Any, NamedTuple

import pytest

from deployctl.agent import newest
from deployctl.agent.faults import Cancelled, Fault
from tests.agent_ops import Job, start, until

CHECK = [sys.executable, "-c", "import sys; sys.exit(open(sys.argv[1]).read() != 'whole')"]


class Start(NamedTuple):
    argv: list[str]
    environment: dict[str, str]
    directory: str
    user: Any = None
    groups: Any = None


class Heeding(Job):
    """A job that a person takes back once a file is there."""

    def __init__(self, file: Any = None) -> None:
        super().__init__("r")
        self.file = file

    def heed(self) -> None:
        if self.file is not None and self.file.exists() and self.file.read_text():
            raise Cancelled("cancelled")


@pytest.fixture
def home(tmp_path: Any) -> Any:
    for age, name in enumerate(("3", "2", "1")):
        (tmp_path / f"step_{name}.pt").write_text("whole")
        os.utime(tmp_path / f"step_{name}.pt", (1000 - age, 1000 - age))
    return tmp_path


def chosen(home: Any, job: Any = None, **wanted: Any) -> Any:
    job = job or Heeding()
    whole = {"mark": "<newest>", "flag": "resume", "pattern": "step_*.pt", "complete": [], "default": None, **wanted}
    begun = newest.filled(job, {"newest": [whole]}, Start(["t", "--resume=<newest>"], {"R": "<newest>", "PATH": "/bin"}, str(home)))
    return begun, job.events[0]


def test_the_newest_file_takes_the_place_of_its_mark(home: Any) -> None:
    begun, told = chosen(home)
    assert (begun.argv, begun.environment["R"]) == (["t", "--resume=step_3.pt"], "step_3.pt")
    assert (told["path"], told["found"], told["passed"]) == ("step_3.pt", True, [])


def test_a_file_that_somebody_has_open_is_passed_over(home: Any) -> None:
    holder = start("import sys, time; f = open(sys.argv[1], 'a'); print(1, flush=True); time.sleep(600)", str(home / "step_3.pt"))
    try:
        assert holder.stdout is not None
        until(holder.stdout.readline, "the open file")
        begun, told = chosen(home)
    finally:
        holder.kill()
        holder.communicate()
    assert begun.argv[1] == "--resume=step_2.pt"
    assert told["passed"] == [{"path": "step_3.pt", "why": "is open in a process"}]


def test_a_file_that_is_not_complete_is_passed_over(home: Any) -> None:
    (home / "step_3.pt").write_text("ha")
    os.utime(home / "step_3.pt", (2000, 2000))
    begun, told = chosen(home, complete=CHECK)
    assert begun.argv[1] == "--resume=step_2.pt"
    assert told["passed"] == [{"path": "step_3.pt", "why": f"is not complete ({sys.executable}: 1)"}]


def test_the_check_runs_in_the_directory_and_environment_of_the_program(home: Any) -> None:
    code = "import os, sys; sys.exit((os.getcwd(), os.environ.get('PATH'), sys.argv[1]) != (%r, '/bin', 'step_3.pt'))" % str(home)  # noqa: UP031
    assert chosen(home, complete=[sys.executable, "-c", code])[1]["path"] == "step_3.pt"


def test_an_absolute_pattern_gives_an_absolute_path(home: Any) -> None:
    assert chosen("/", pattern=f"{home}/step_*.pt")[0].argv[1] == f"--resume={home}/step_3.pt"


def test_the_default_is_taken_where_no_file_will_do(home: Any) -> None:
    begun, told = chosen(home, pattern="none_*.pt", default="scratch")
    assert (begun.argv[1], told["found"]) == ("--resume=scratch", False)


@pytest.mark.parametrize(
    ("wanted", "what"),
    [
        ({"pattern": "none_*.pt"}, "there is no such file"),
        ({"complete": ["/bin/false"]}, "no file is whole; step_3.pt is not complete"),
        ({"complete": ["no-such-check"]}, "no file is whole; step_3.pt could not be checked: there is no program 'no-such-check'"),
    ],
)
def test_without_a_file_and_a_default_the_launch_fails(home: Any, wanted: dict[str, Any], what: str) -> None:
    with pytest.raises(Fault, match=what):
        chosen(home, **wanted)


def test_a_check_that_hangs_ends_with_the_run_that_is_taken_back(home: Any) -> None:
    code = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)"
    with pytest.raises(Cancelled):
        chosen(home, Heeding(home / "pid"), complete=[sys.executable, "-c", code])
    with pytest.raises(ProcessLookupError):
        os.kill(int((home / "pid").read_text()), 0)
