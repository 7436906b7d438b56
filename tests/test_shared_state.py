"""A state directory that two operators without root share: each sees the other's lock and runs, and nobody sees the other's secrets."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from deployctl.errors import BusyError
from deployctl.target import Session
from deployctl.transports.local import Local, LocalChannel

pytestmark = pytest.mark.lab  # needs root, to become somebody else
GROUP, ANNA, BERT = 64100, 64101, 64102
WORKLOAD = {
    "name": "train", "directory": "/", "command": ["sleep", "9"], "environment": {}, "user": None, "log": None, "match": "no such program",
}  # fmt: skip


class As(Local):
    """This machine, as another user."""

    def __init__(self, uid: int) -> None:
        super().__init__()
        self._become = ["/usr/bin/setpriv", f"--reuid={uid}", f"--regid={GROUP}", "--clear-groups"]

    def open(self, argv: Sequence[str]) -> LocalChannel:
        return super().open([*self._become, *argv])


@pytest.fixture
def place() -> Iterator[Path]:
    with TemporaryDirectory(dir="/tmp") as made:  # pytest's own directories are root's alone
        os.chmod(made, 0o755)
        state = Path(made, "state")
        state.mkdir()
        os.chown(state, 0, GROUP)
        os.chmod(state, 0o2770)
        yield state


def run(place: int) -> str:
    """The id of a run of today: older ones are pruned."""
    return time.strftime(f"%Y%m%d-00000{place}-aaaa", time.gmtime())


def opened(uid: int, place: Path, name: str) -> Session:
    session = Session("box", As(uid), state=str(place))
    try:
        session.ask("open", run=name, who={"user": f"u{uid}", "host": "h", "pid": 1}, workload=WORKLOAD)
    except BaseException:
        session.close()
        raise
    return session


def test_the_second_operator_is_told_of_the_first(place: Path) -> None:
    with opened(ANNA, place, run(0)), pytest.raises(BusyError, match=f"u{ANNA}@h"):
        opened(BERT, place, run(1))


def test_each_sees_the_runs_of_the_other_and_works_after_him(place: Path) -> None:
    for number, uid in enumerate((ANNA, BERT, ANNA)):
        opened(uid, place, run(number)).close()
    with opened(BERT, place, run(3)) as session:
        assert [item["run"] for item in session.ask("history")["runs"]] == [run(number) for number in range(4)]


def test_what_is_made_there_is_for_the_group_and_for_nobody_else(place: Path) -> None:
    with opened(ANNA, place, run(0)):
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in place.rglob("*")}
    assert modes == {"workloads": 0o2770, "train": 0o2770, "runs": 0o2770, "lock": 0o660, f"{run(0)}.jsonl": 0o660}


def test_a_directory_without_the_setgid_bit_keeps_the_other_out(place: Path) -> None:
    os.chmod(place, 0o770)
    with opened(ANNA, place, run(0)):
        assert {stat.S_IMODE(path.stat().st_mode) for path in place.rglob("*")} == {0o700, 0o600}
