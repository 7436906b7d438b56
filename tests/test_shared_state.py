"""A state directory that two operators without root share: each sees the other's lock and runs, and nobody sees the other's secrets."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from deployctl.errors import BusyError
from deployctl.target import Session
from tests.operators import ANNA, BERT, As

pytestmark = pytest.mark.lab  # needs root, to become somebody else
WORKLOAD = {
    "name": "train", "directory": "/", "command": ["sleep", "9"], "environment": {}, "user": None, "log": None, "match": "no such program",
}  # fmt: skip


def run(number: int) -> str:
    """The id of a run of today: older ones are pruned."""
    return time.strftime(f"%Y%m%d-00000{number}-aaaa", time.gmtime())


def opened(uid: int, shared_state: Path, name: str) -> Session:
    session = Session("box", As(uid), state=str(shared_state))
    try:
        session.ask("open", run=name, who={"user": f"u{uid}", "host": "h", "pid": 1}, workload=WORKLOAD)
    except BaseException:
        session.close()
        raise
    return session


def test_the_second_operator_is_told_of_the_first(shared_state: Path) -> None:
    with opened(ANNA, shared_state, run(0)), pytest.raises(BusyError, match=f"u{ANNA}@h"):
        opened(BERT, shared_state, run(1))


def test_each_sees_the_runs_of_the_other_and_works_after_him(shared_state: Path) -> None:
    for number, uid in enumerate((ANNA, BERT, ANNA)):
        opened(uid, shared_state, run(number)).close()
    with opened(BERT, shared_state, run(3)) as session:
        assert [item["run"] for item in session.ask("history")["runs"]] == [run(number) for number in range(4)]


def test_what_is_made_there_is_for_the_group_and_for_nobody_else(shared_state: Path) -> None:
    with opened(ANNA, shared_state, run(0)):
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in shared_state.rglob("*")}
    assert modes == {"workloads": 0o2770, "train": 0o2770, "runs": 0o2770, "lock": 0o660, f"{run(0)}.jsonl": 0o660}


def test_a_directory_without_the_setgid_bit_keeps_the_other_out(shared_state: Path) -> None:
    os.chmod(shared_state, 0o770)
    with opened(ANNA, shared_state, run(0)):
        assert {stat.S_IMODE(path.stat().st_mode) for path in shared_state.rglob("*")} == {0o700, 0o600}
