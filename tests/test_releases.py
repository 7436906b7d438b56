"""releases and forget: what a target keeps for going back, what another hand has changed, and how all of it goes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deployctl.agent import lock
from deployctl.agent.faults import Busy
from deployctl.report import releases as report
from tests.site import Site, until
from tests.steps import WHO, Talk, refused

DAYS = [f"2026010{day}-000000-aaaa" for day in (1, 2, 3)]


def deploy(home: Path, run: str, files: dict[str, bytes], **fields: Any) -> None:
    """One run that brings these files."""
    talk = Talk(home, run)
    for path in list(talk.contents_of(talk.train)):
        (talk.train / path).unlink()
    for path, content in files.items():
        talk.write(path, content)
    talk.golive(talk.push(**fields))
    talk.close()


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Talk]:
    """After three runs: a.py was brought by all, b.py by the second, c.py was removed by the third."""
    (tmp_path / "live").mkdir()
    (tmp_path / "live" / "c.py").write_bytes(b"c")
    deploy(tmp_path, DAYS[0], {"a.py": b"1"})
    deploy(tmp_path, DAYS[1], {"a.py": b"22", "b.py": b"b"})
    deploy(tmp_path, DAYS[2], {"a.py": b"333", "b.py": b"b"}, include=["*.py"], delete=True)
    talk = Talk(tmp_path, "20260104-000000-aaaa")
    yield talk
    talk.close()


def releases(talk: Talk) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = talk.ask("releases", state=str(talk.state))["releases"]
    return found


def test_the_releases_are_listed_with_run_who_and_size(kept: Talk) -> None:
    found = releases(kept)
    assert [item["run"] for item in found] == DAYS[::-1]
    assert {(item["workload"], item["root"], item["who"]["user"]) for item in found} == {("train", str(kept.live), "anna")}
    assert [(item["files"], item["size"]) for item in found] == [(2, 3), (1, 1), (0, 0)]
    assert abs(time.time() - found[0]["at"]) < 600
    assert [item["drift"] for item in found] == [[], [], []]
    assert kept.ask("releases", state=str(kept.state), workload="train")["releases"] == found
    assert kept.ask("releases", state=str(kept.state), workload="other")["releases"] == []


def test_what_another_hand_changed_is_drift_of_the_run_that_brought_it(kept: Talk) -> None:
    kept.write_live("a.py", b"by hand")
    (kept.live / "b.py").unlink()
    kept.write_live("c.py")
    kept.write_live("unknown.py")
    assert {item["run"]: item["drift"] for item in releases(kept)} == {
        DAYS[2]: [{"path": "a.py", "what": "was changed"}, {"path": "c.py", "what": "is there again"}],
        DAYS[1]: [{"path": "b.py", "what": "is gone"}],
        DAYS[0]: [],
    }


def test_a_release_that_is_too_old_goes_with_the_next_run(kept: Talk) -> None:
    old = kept.live / ".deployctl" / DAYS[2]
    os.utime(old, (0, time.time() - 91 * 86400))
    kept.write("a.py", b"4444")
    kept.golive(kept.push(include=["a.py"]))
    assert sorted(os.listdir(kept.live / ".deployctl")) == [DAYS[1], "20260104-000000-aaaa"]


def test_another_workload_in_the_same_directory_keeps_its_releases_and_what_it_staged(kept: Talk) -> None:
    other = Talk(kept.home, "20260105-000000-bbbb", name="other")
    other.write("o.py")
    other.push()
    for run in ("20260106-000000-aaaa", "20260107-000000-aaaa"):
        kept.close()
        kept = Talk(kept.home, run)
        kept.write("a.py", run.encode())
        kept.golive(kept.push(include=["a.py"]))
    assert sorted(os.listdir(kept.live / ".deployctl"))[-3:] == [other.run, "20260106-000000-aaaa", "20260107-000000-aaaa"]
    assert other.staged("o.py").exists()
    other.close()


# --- forget


def forget(talk: Talk, workload: str = "train") -> dict[str, Any]:
    return talk.ask("forget", state=str(talk.state), workload=workload, who=WHO)


def test_a_workload_whose_lock_is_held_is_not_forgotten(kept: Talk) -> None:
    second = Talk(kept.home, "20260108-000000-bbbb", name="other")
    assert refused(lambda: forget(second)).exit_status == 6
    second.close()
    assert len(releases(kept)) == 3


def test_nothing_of_a_forgotten_workload_is_left_but_its_live_files(kept: Talk) -> None:
    live = kept.contents()
    kept.close()
    other = Talk(kept.home, "20260108-000000-bbbb", name="other")
    assert forget(other)["releases"] == 3
    assert (other.contents(), os.listdir(other.live)) == (live, sorted(live))
    assert os.listdir(other.state / "workloads") == ["other"]
    assert refused(lambda: forget(other)).what == "nothing is known of 'train' here"
    other.close()


def test_a_lock_that_was_forgotten_meanwhile_is_not_taken(tmp_path: Path) -> None:
    """Who opened the old file gets no lock by it: somebody else may hold the new one."""
    path = str(tmp_path / "lock")
    real = os.open

    def opened_then_forgotten(*words: Any) -> int:
        handle = real(*words)
        os.unlink(path)
        return handle

    os.open = opened_then_forgotten  # type: ignore[assignment]
    try:
        with pytest.raises(Busy):
            lock.take(path, WHO)
    finally:
        os.open = real


def test_a_run_is_listed_and_a_running_workload_is_not_forgotten(local_site: Site) -> None:
    local_site.launch_old()
    local_site.restart()
    [run] = {event["run"] for event in local_site.events()}
    (Path(local_site.directory) / "throughput.py").write_text("by hand")
    shown = local_site.run("releases", "here").stdout
    assert shown.startswith(f"{run}  here:train  ")
    assert "  2 old files, " in shown
    assert "drift: throughput.py was changed" in shown
    [found] = json.loads(local_site.run("releases", "here:train", "--json").stdout)["releases"]
    assert found["root"] == local_site.directory
    assert "do: write TARGET:WORKLOAD" in local_site.run("forget", "here", status=2).stderr
    assert "it runs as pid" in local_site.run("forget", "here:train", status=1).stderr
    for seen in local_site.trainers():
        os.kill(seen["pid"], 9)
    until("the trainer is gone", lambda: not local_site.trainers())
    assert local_site.run("forget", "here:train").stdout == "here:train is forgotten: 1 run, 1 release\n"
    assert local_site.run("releases", "here").stdout == "here: no release is kept here\n"
    assert not (Path(local_site.directory) / ".deployctl").exists()


def test_a_release_of_unknown_origin_is_shown_all_the_same() -> None:
    item = {"run": "r", "workload": "train", "root": "/srv", "at": None, "who": None, "files": 1, "size": 5, "drift": []}
    assert report.lines("ct200", [item]) == ["r  ct200:train  1 old file, 5 B  /srv"]
