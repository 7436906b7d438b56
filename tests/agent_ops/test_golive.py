"""golive and goback: all files of a run or none, whatever stands in the way and wherever it was killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from deployctl.agent import golive
from deployctl.agent.faults import Fault
from deployctl.agent.place import Place
from tests.agent_ops import Job, forked, read, start, until, write

RUN = "20260105-000000-aaaa"
GONE = {"gone.py": b"old gone", "pkg/old.py": b"old pkg"}
COMPILED = {"__pycache__/a.cpython-311.pyc": b"a", "pkg/__pycache__/old.cpython-311.pyc": b"old", "gone.pyc": b"gone"}
OLD = {"a.py": b"old a", "b.py": b"old b", "sub/c.py": b"old c", **GONE, **COMPILED}
NEW = {"a.py": b"new a", "b.py": b"new b", "sub/c.py": b"new c", "d.py": b"new d", "fresh/e.py": b"new e"}


class Site:
    """A destination with old files, and new ones that wait."""

    def __init__(self, root: str, run: str = RUN) -> None:
        self.root, self.job, self.place = root, Job(run), Place(root, run)
        self.operation: dict[str, Any] = {"sets": [{"root": root, "paths": sorted(NEW), "remove": sorted(GONE)}]}

    def fill(self) -> Site:
        for path, content in OLD.items():
            write(self.place.live(path), content)
        return self.stage()

    def stage(self, files: dict[str, bytes] | None = None) -> Site:
        for path, content in (files or NEW).items():
            write(self.place.new(path), content)
        return self

    def golive(self) -> None:
        golive.golive(self.job, self.operation)

    def goback(self) -> None:
        golive.goback(self.job, self.operation)

    def live(self) -> dict[str, bytes]:
        found = {}
        for directory, names, files in os.walk(self.root):
            if ".deployctl" in names:
                names.remove(".deployctl")
            for name in files:
                path = os.path.join(directory, name)
                found[os.path.relpath(path, self.root)] = read(path)
        return found


@pytest.fixture
def site(tmp_path: Any) -> Site:
    """Three old files, and new ones for them and for two names that are new."""
    return Site(str(tmp_path / "live")).fill()


def inode(path: str) -> int:
    return os.lstat(path).st_ino


def test_all_files_go_live(site: Site) -> None:
    site.golive()
    assert site.live() == NEW
    assert [(event["what"], event["files"], event["removed"]) for event in site.job.events] == [("live", 5, 2)]
    assert not os.path.exists(site.place.live("pkg"))


def test_the_old_files_are_kept_in_the_release(site: Site) -> None:
    site.golive()
    assert {path: read(site.place.old(path)) for path in OLD} == OLD


def test_goback_brings_the_old_files_themselves_and_removes_the_new(site: Site) -> None:
    before = {path: inode(site.place.live(path)) for path in OLD}
    site.golive()
    site.goback()
    assert site.live() == OLD
    assert {path: inode(site.place.live(path)) for path in OLD} == before
    assert [(event["what"], event["files"]) for event in site.job.events[1:]] == [("back", 7)]
    assert not os.path.exists(site.place.live("fresh"))


def test_goback_leaves_no_place_of_the_run(site: Site) -> None:
    site.golive()
    site.goback()
    assert not os.path.exists(site.place.path)


def test_goback_without_a_golive_changes_nothing(site: Site) -> None:
    site.goback()
    assert site.live() == OLD
    assert [(event["what"], event["files"]) for event in site.job.events] == [("back", 0)]


@pytest.mark.parametrize("act", ["golive", "goback"])
def test_an_act_can_be_repeated(site: Site, act: str) -> None:
    site.golive()
    for _ in range(3):
        getattr(site, act)()
    assert site.live() == (NEW if act == "golive" else OLD)


def test_what_a_later_hand_wrote_survives_no_golive_but_a_second_goback(site: Site) -> None:
    site.golive()
    site.goback()
    write(site.place.live("a.py"), b"by hand")
    site.goback()
    assert read(site.place.live("a.py")) == b"by hand"


# --- a crash in the middle

CHANGES = ("link", "rename", "replace", "unlink", "mkdir", "rmdir")


def killed(site: Site, act: str, at: int) -> bool:
    """Whether the act was killed before its change number `at`; else it came to its end."""
    left = at

    def dying(call: Any) -> Any:
        def change(*words: Any, **more: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*words, **more)

        return change

    def die() -> None:
        for name in CHANGES:
            setattr(os, name, dying(getattr(os, name)))
        getattr(site, act)()

    status = forked(die)
    assert status in (0, -signal.SIGKILL)
    return status != 0


def crashes(home: Any, act: str) -> Iterator[Site]:
    """A site for each change at which the act can be killed."""
    for at in range(90):
        site = Site(str(home / str(at))).fill()
        if act == "goback":
            site.golive()
        if not killed(site, act, at):
            assert at > 5
            return
        yield site
    raise AssertionError("it never came to its end")


@pytest.mark.parametrize("act", ["golive", "goback"])
def test_a_crash_at_any_change_can_be_finished(tmp_path: Any, act: str) -> None:
    for site in crashes(tmp_path, act):
        getattr(site, act)()
        assert site.live() == (NEW if act == "golive" else OLD)


def test_a_golive_that_crashed_at_any_change_can_be_taken_back(tmp_path: Any) -> None:
    for site in crashes(tmp_path, "golive"):
        before = set(site.live())
        site.goback()
        assert site.live() == OLD
        assert before >= set(OLD) & set(NEW)


# --- what stands in the way


def block(site: Site, path: str) -> None:
    """A directory that is not empty stands where the file must go."""
    if os.path.exists(site.place.live(path)):
        os.unlink(site.place.live(path))
    write(os.path.join(site.place.live(path), "in-the-way"), b"x")


@pytest.mark.parametrize("path", ["b.py", "d.py"])
def test_what_stands_in_the_way_is_named_and_the_rest_goes_back(site: Site, path: str) -> None:
    block(site, path)
    with pytest.raises(Fault) as caught:
        site.golive()
    assert path in caught.value.where
    assert caught.value.what.startswith("cannot go live: ")
    site.goback()
    left = site.live()
    assert left.pop(path + "/in-the-way") == b"x"
    assert left == {name: content for name, content in OLD.items() if name != path}


def test_a_file_where_a_directory_must_be_is_named_and_the_rest_goes_back(site: Site) -> None:
    write(site.place.live("fresh"), b"a file")
    with pytest.raises(Fault, match="cannot go live"):
        site.golive()
    site.goback()
    assert site.live() == dict(OLD, fresh=b"a file")


def test_a_staged_file_that_is_gone_is_no_success(site: Site) -> None:
    os.unlink(site.place.new("b.py"))
    with pytest.raises(Fault):
        site.golive()


@pytest.fixture
def small(tmp_path: Any) -> Iterator[str]:
    """A file system of 100 files."""
    home = str(tmp_path / "small")
    os.mkdir(home)
    command = ["mount", "-t", "tmpfs", "-o", "size=2m,nr_inodes=100", "tmpfs", home]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("nothing may be mounted here")
    yield home
    subprocess.run(["umount", "-l", home], check=True)


def test_a_disk_that_fills_at_any_point_of_going_live_brings_all_files_back(small: str) -> None:
    """With each number of files that may still be made; at none of them is anything lost, and with enough of them all go live."""
    failed = 0
    for left in range(40):
        site = Site(os.path.join(small, "live")).fill()
        for number in range(os.statvfs(small).f_ffree - left):
            write(os.path.join(small, f"ballast-{number}"), b"")
        try:
            site.golive()
            assert site.live() == NEW
        except Fault as fault:
            assert "No space left" in fault.what
            failed += 1
        site.goback()
        assert site.live() == OLD
        shutil.rmtree(site.root)
        for name in os.listdir(small):
            os.unlink(os.path.join(small, name))
    assert 2 < failed < 30


# --- several sets, several runs


def test_two_golives_of_one_run_into_one_directory_both_go(site: Site) -> None:
    first, second = ["a.py", "d.py"], ["b.py", "fresh/e.py", "sub/c.py"]
    sets = [{"root": site.root, "paths": first}, {"root": site.root, "paths": second, "remove": sorted(GONE)}]
    for files in sets:
        golive.golive(site.job, {"sets": [files]})
    assert site.live() == NEW
    for files in reversed(sets):
        golive.goback(site.job, {"sets": [files]})
    assert site.live() == OLD


def test_the_sets_of_one_operation_go_together(tmp_path: Any) -> None:
    sites = [Site(str(tmp_path / name)).fill() for name in ("one", "two")]
    both = {"sets": [site.operation["sets"][0] for site in sites]}
    golive.golive(sites[0].job, both)
    assert [site.live() for site in sites] == [NEW, NEW]
    golive.goback(sites[0].job, both)
    assert [site.live() for site in sites] == [OLD, OLD]


def runs_of(root: str) -> list[str]:
    return sorted(os.listdir(os.path.join(root, ".deployctl")))


def test_three_releases_are_kept(site: Site) -> None:
    days = [f"2026010{day}-000000-aaaa" for day in (1, 2, 3, 4)]
    for run in days:
        write(os.path.join(site.root, ".deployctl", run, "old", "a.py"), b"older")
    site.golive()
    assert runs_of(site.root) == [days[2], days[3], RUN]


def test_a_clock_that_went_back_does_not_cost_the_release_of_this_run(site: Site) -> None:
    for run in ("20270101-000000-aaaa", "20270102-000000-aaaa", "20270103-000000-aaaa"):
        write(os.path.join(site.root, ".deployctl", run, "old", "a.py"), b"later")
    site.golive()
    site.goback()
    assert site.live() == OLD


# --- whoever looks meanwhile

LOOK = """
import os, sys
missing, looks = 0, 0
paths = [os.path.join(sys.argv[1], name) for name in sys.argv[3:]]
print("looking", flush=True)
while not os.path.exists(sys.argv[2]):
    for path in paths:
        looks += 1
        try:
            os.stat(path)
        except OSError:
            missing += 1
print(missing, looks)
"""


def test_no_name_is_ever_missing(tmp_path: Any) -> None:
    site, over = Site(str(tmp_path / "live")).fill(), str(tmp_path / "over")
    with start(LOOK, site.root, over, *(set(OLD) & set(NEW))) as looker:
        assert looker.stdout is not None
        assert looker.stdout.readline() == b"looking\n"
        try:
            for _ in range(50):
                site.golive()
                site.goback()
                site.stage()
        finally:
            write(over, b"")
        missing, looks = looker.stdout.read().split()
    assert (int(missing), int(looks) > 100) == (0, True)


def test_a_program_that_holds_the_old_file_open_keeps_reading_it(site: Site) -> None:
    with open(site.place.live("a.py"), "rb") as stream:
        site.golive()
        assert stream.read() == OLD["a.py"]
        site.goback()
    until(lambda: site.live() == OLD, "the old files")
