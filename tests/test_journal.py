"""The controller's journal: private, whole lines, and never a reason for a run to fail."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from deployctl.events import Event, event, new_run
from deployctl.journal import KEPT, Journal

RUN = "20260101-000000-aaaa"


def told(what: str = "begin", run: str = RUN, **fields: object) -> Event:
    return event(run, "ct200", "prepare", what, **fields)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """A journal whose directory does not exist yet."""
    return Journal(tmp_path / "state" / "runs")


def test_what_was_written_is_read(journal: Journal) -> None:
    events = [told(), told("found", process={"argv": ["a\n", "ä", "\udcff"]}), told("end", status=0)]
    for item in events:
        journal.append(item)
    assert journal.read(RUN) == events
    assert (journal.directory / f"{RUN}.jsonl").read_bytes().count(b"\n") == 3
    assert journal.trouble is None


def test_directory_and_file_are_private(journal: Journal) -> None:
    journal.append(told())
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (journal.directory, journal.directory / f"{RUN}.jsonl")]
    assert [oct(mode) for mode in modes] == ["0o700", "0o600"]


def test_each_event_is_there_at_once(journal: Journal) -> None:
    journal.append(told())
    assert Journal(journal.directory).read(RUN) == journal.read(RUN) != []


def test_two_writers_do_not_tear_each_others_lines(journal: Journal) -> None:
    code = (
        "import sys; from pathlib import Path; from deployctl.journal import Journal; journal = Journal(Path(sys.argv[1]))\n"
        "for number in range(200):\n"
        "    journal.append({'run': sys.argv[2], 'what': 'x', 'writer': sys.argv[3], 'number': number, 'fill': 'y' * 9000})"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(journal.directory), RUN, name]) for name in ("a", "b")]
    assert [writer.wait(30) for writer in writers] == [0, 0]
    lines = [json.loads(line) for line in (journal.directory / f"{RUN}.jsonl").read_text().splitlines()]
    assert [line["number"] for line in lines if line["writer"] == "a"] == list(range(200))
    assert len(lines) == 400


@pytest.mark.parametrize("tail", [b"", b'{"what": "end", "sta', b"\xff", b"\n\n"])
def test_a_torn_last_line_is_passed_over(journal: Journal, tail: bytes) -> None:
    journal.append(told())
    with (journal.directory / f"{RUN}.jsonl").open("ab") as out:
        out.write(tail)
    assert [item["what"] for item in journal.read(RUN)] == ["begin"]


def test_what_comes_after_a_torn_line_is_not_lost(journal: Journal) -> None:
    journal.append(told())
    with (journal.directory / f"{RUN}.jsonl").open("ab") as out:
        out.write(b'{"what": "en')
    journal.append(told("end"))
    assert [item["what"] for item in journal.read(RUN)] == ["begin", "end"]


@pytest.mark.parametrize("line", [b"null", b"5", b"[]", b'"end"', b"{}"])
def test_a_line_that_is_no_event_is_passed_over(journal: Journal, line: bytes) -> None:
    journal.append(told())
    with (journal.directory / f"{RUN}.jsonl").open("ab") as out:
        out.write(line + b"\n")
    assert [item["what"] for item in journal.read(RUN)] == ["begin"]


def test_a_disk_that_is_full_tears_no_line(tmp_path: Path) -> None:
    """RLIMIT_FSIZE cuts a write short as a full disk does."""
    code = (
        "import resource, signal, sys; from pathlib import Path; from deployctl.journal import Journal\n"
        "journal = Journal(Path(sys.argv[1]))\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))\n"
        "for number in range(20): journal.append({'run': sys.argv[2], 'what': 'x', 'number': number})\n"
        "print(journal.trouble)"
    )
    words = [sys.executable, "-c", code, str(tmp_path), RUN]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, timeout=30, check=True)
    assert done.stdout.strip() != "None"
    assert (tmp_path / f"{RUN}.jsonl").read_bytes().endswith(b"}\n")


def test_a_run_that_is_not_known_has_no_events(journal: Journal) -> None:
    assert journal.read("20250101-000000-aaaa") == []


def test_the_newest_run_is_the_one_that_began_last(journal: Journal) -> None:
    assert journal.newest() is None
    for run in ("20260102-000000-aaaa", "20260103-000000-aaaa", "20260101-000000-zzzz"):
        journal.append(told(run=run))
    assert journal.newest() == "20260103-000000-aaaa"


@pytest.mark.parametrize("place", ["file/runs", "file", "link/runs"])
def test_a_directory_that_cannot_be_written_is_told_and_raises_nothing(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("link")
    journal = Journal(tmp_path / place)
    journal.append(told())
    journal.append(told("end"))
    assert journal.trouble is not None
    assert str(tmp_path / place) in journal.trouble
    assert journal.read(RUN) == []
    assert journal.newest() is None


def test_a_full_disk_is_told_and_raises_nothing(tmp_path: Path) -> None:
    (tmp_path / f"{RUN}.jsonl").symlink_to("/dev/full")
    journal = Journal(tmp_path)
    journal.append(told())
    assert journal.trouble == f"{tmp_path}: No space left on device"


def test_the_first_trouble_is_the_one_that_is_told(tmp_path: Path) -> None:
    (tmp_path / f"{RUN}.jsonl").symlink_to("/dev/full")
    journal = Journal(tmp_path)
    journal.append(told())
    (tmp_path / f"{RUN}.jsonl").unlink()
    (tmp_path / f"{RUN}.jsonl").mkdir()
    journal.append(told())
    assert journal.trouble is not None
    assert "No space left" in journal.trouble


def test_only_the_newest_runs_are_kept(journal: Journal) -> None:
    journal.directory.mkdir(parents=True)
    runs = [f"20260101-{number:06d}-aaaa" for number in range(KEPT + 5)]
    for run in runs:
        (journal.directory / f"{run}.jsonl").write_text("{}\n")
    journal.append(told(run="20260102-000000-aaaa"))
    assert sorted(path.stem for path in journal.directory.iterdir()) == [*runs[6:], "20260102-000000-aaaa"]


def test_the_default_directory_is_that_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert Journal().directory == tmp_path / "deployctl" / "runs"


def test_the_id_of_a_run_sorts_by_its_time() -> None:
    import re

    assert re.fullmatch(r"\d{8}-\d{6}-[a-z2-9]{4}", new_run())
