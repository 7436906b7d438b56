"""Each program of tests/stuck/programs brings its state about, and `deployctl why` names it before and after the signal."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from deployctl.verdicts import VERDICTS
from tests.stuck import family, header, warm
from tests.stuck.__main__ import apart, table
from tests.stuck.header import Header
from tests.stuck.rounds import How

EVERYTHING = header.everything()


@pytest.mark.parametrize("program", EVERYTHING, ids=lambda program: program.name)
def test_why_names_the_state_that_a_program_is_in(program: Header) -> None:
    lacking = header.missing(program)
    if lacking:
        pytest.skip(f"needs {', '.join(lacking)}")
    row = warm.apart(program)
    if row.wrong and program.known:
        pytest.xfail(program.known)
    assert row.wrong == [], "\n".join(row.evidence)


def test_each_verdict_of_the_contract_is_brought_about_by_two_programs() -> None:
    counted = Counter(program.after[0].verdict for program in EVERYTHING)
    assert set(VERDICTS) == set(header.VERDICTS)
    assert [verdict for verdict in VERDICTS if counted[verdict] < 2] == []


def falsified(program: str, line: str, tmp_path: Path) -> Path:
    """A directory with this program, one line of whose header says something else."""
    text = (header.PROGRAMS / program).read_text().splitlines()
    key = line.partition(":")[0]
    (tmp_path / program).write_text("\n".join(line if old.startswith(key) else old for old in text) + "\n")
    return tmp_path


def test_the_table_ends_with_1_when_a_verdict_is_not_the_expected_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = falsified("event-loop.py", "# after: zombie", tmp_path)
    assert table(header.everything(place), 1, How()) == 1
    assert "WRONG after: running" in capsys.readouterr().out


def test_a_cure_that_does_not_end_the_process_is_told(tmp_path: Path) -> None:
    place = falsified("in-background.sh", "# cure: INT", tmp_path)
    (program,) = header.everything(place)
    assert "the cure ['INT']" in str(apart(program, How(bare=True, patience=2.0)).wrong)


@pytest.mark.skipif(not header.HERE["freezer"](), reason="needs freezer")
def test_a_driver_that_is_ended_leaves_no_process_and_no_group(tmp_path: Path) -> None:
    shutil.copy(header.PROGRAMS / "frozen-while-busy.py", tmp_path)
    shutil.copy(header.PROGRAMS / "_group.py", tmp_path)
    program = tmp_path / "frozen-while-busy.py"
    program.write_text(program.read_text().replace('print("ready"', 'print("unready"'))  # so that the driver waits
    argv = [sys.executable, "-m", "tests.stuck", "--one", program.name, "--programs", str(tmp_path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as driver:
        family.until(lambda: any(family.state(pid) == "D" for pid in family.descendants(driver.pid)), "the freeze")
        below = family.descendants(driver.pid)
        driver.send_signal(signal.SIGTERM)
        driver.wait(family.PATIENCE)
    assert [pid for pid in below if os.path.exists(f"/proc/{pid}")] == []
    assert [name for name in os.listdir("/sys/fs/cgroup/freezer") if name.startswith("stuck-") and name[6:] in map(str, below)] == []
