"""A full disk: before the cut-over nothing changes; from the first signal on the end is a true one and the workload runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.site import Site, until

# Takes each block that becomes free, in the background; its pid goes into a file.
HOG = """
import os, signal, sys, time
ballast = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
if os.fork():
    os._exit(0)
os.setsid()
with open(sys.argv[2], "w") as out:
    out.write(str(os.getpid()))
nothing = os.open(os.devnull, os.O_RDWR)
for number in (0, 1, 2):
    os.dup2(nothing, number)
end = time.monotonic() + 90
while time.monotonic() < end:
    try:
        os.write(ballast, bytes(4096))
    except OSError:
        time.sleep(0.001)
"""


@pytest.fixture
def small(ct_site: Site) -> Site:
    """A site whose directory, records included, lies on a small file system of its own in the container."""
    ct_site.state = f"{ct_site.directory}/state"
    ct_site.write()
    ct_site.place.exec("/bin/rm", "-rf", ct_site.directory)
    ct_site.place.exec("/bin/mkdir", ct_site.directory)
    ct_site.place.exec("/bin/mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", ct_site.directory)
    ct_site.install_old()
    return ct_site


def fill(site: Site) -> None:
    site.place.exec("/bin/sh", "-c", 'cat /dev/zero >"$0/ballast" 2>/dev/null; true', site.directory)


def free(site: Site) -> None:
    site.place.exec("/bin/rm", "-f", f"{site.directory}/ballast")


@contextmanager
def taken(site: Site, directory: str) -> Iterator[None]:
    """Another program takes each block of the file system that becomes free, as a trainer does that saves there."""
    pidfile = f"{site.directory}/hog.pid"
    site.place.python(HOG, f"{directory}/ballast", pidfile)
    until("the disk is full", lambda: b" 0 " in site.place.exec("/bin/df", "--output=avail,size", directory).stdout + b" ")
    try:
        yield
    finally:
        site.place.exec("/bin/kill", "-KILL", site.place.read(pidfile).decode())
        site.place.exec("/bin/rm", f"{directory}/ballast")


@pytest.fixture
def records(ct_site: Site) -> Iterator[str]:
    """The state directory of a site, on a small file system of its own in the container."""
    ct_site.place.exec("/bin/mkdir", ct_site.state)
    ct_site.place.exec("/bin/mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", ct_site.state)
    yield ct_site.state
    for seen in ct_site.trainers():
        ct_site.place.exec("/bin/kill", "-KILL", str(seen["pid"]), check=False)
    ct_site.place.exec("/bin/umount", "-l", ct_site.state)


def in_the_stop(site: Site) -> None:
    until("the stop has begun", lambda: any(event["what"] == "rung" for event in site.target_events()))


def run_files(site: Site) -> list[str]:
    """What is left of runs under way: all but event files, records and the lock."""
    kept = (".jsonl", "/lock", "/record.json", "/exit.json", "/roots.json", "/runs", "/train", "/workloads")
    return [path for path in site.place.listing(site.state) if not path.endswith(kept)]


def done_with(site: Site) -> None:
    for seen in site.trainers():
        site.place.exec("/bin/kill", "-KILL", str(seen["pid"]), check=False)
    until("the trainer is gone", lambda: not site.trainers())
    site.place.exec("/bin/umount", "-l", site.directory)


@pytest.mark.lab
def test_a_disk_that_is_full_before_the_push_changes_nothing(small: Site) -> None:
    try:
        old = small.launch_old("--step-time", "600", wait=False)  # a trainer that writes would die of the full disk itself
        until("it has said that it begins", lambda: b"a fresh run" in small.place.read(small.log))
        fill(small)
        done = small.restart(status=None)
        assert done.returncode in (1, 3)
        assert "report it" not in done.stdout and "Errno" not in done.stdout
        assert [seen["pid"] for seen in small.trainers()] == [old]
        free(small)
        assert small.staged() == []
    finally:
        done_with(small)


@pytest.mark.lab
def test_records_that_cannot_be_written_stop_no_restart(ct_site: Site, records: str) -> None:
    """The file system of the records fills in the stop: the job's reserve holds its last words."""
    old = ct_site.launch_old("--save-time", "2")
    with ct_site.start("restart", "ct200", "--profile-interval", "60") as controller:
        in_the_stop(ct_site)
        ct_site.place.exec("/bin/sh", "-c", 'cat /dev/zero >"$0/ballast" 2>/dev/null; true', records)
        out, _ = controller.communicate(timeout=90)
    assert controller.returncode == 0, out.decode()
    [now] = ct_site.trainers()
    assert now["pid"] != old
    assert "--profile-interval=60" in now["argv"]
    assert ct_site.target_events()[-1]["what"] == "end"
    assert f"pid {now['pid']}" in ct_site.run("status", "ct200").stdout


@pytest.mark.lab
def test_the_reserve_is_taken_by_nobody_else(ct_site: Site, records: str) -> None:
    old = ct_site.launch_old("--save-time", "3")
    with ct_site.start("restart", "ct200", "--profile-interval", "60") as controller:
        in_the_stop(ct_site)
        with taken(ct_site, records):
            out, _ = controller.communicate(timeout=90)
            [now] = ct_site.trainers()
            assert controller.returncode == 0, out.decode()
            assert now["pid"] != old
            assert [event["what"] for event in ct_site.target_events()][-3:] == ["op", "checked", "end"]
            assert json.loads(ct_site.place.read(f"{records}/workloads/train/record.json"))["pid"] == now["pid"]
            assert f"pid {now['pid']}" in ct_site.run("status", "ct200").stdout
    assert run_files(ct_site) == []


@pytest.mark.lab
def test_a_rollback_on_a_full_disk_is_written_down_too(ct_site: Site, records: str) -> None:
    """It writes two launches and two records; the log's last lines, which explain only, are left out."""
    ct_site.check = {"alive": "1s", "log": "a line that never comes", "within": "3s"}
    ct_site.write()
    ct_site.launch_old("--save-time", "3")
    with ct_site.start("restart", "ct200", "--profile-interval", "60") as controller:
        in_the_stop(ct_site)
        with taken(ct_site, records):
            out, _ = controller.communicate(timeout=90)
            [now] = ct_site.trainers()
            assert controller.returncode == 1, out.decode()
            assert "--profile-interval=60" not in now["argv"]
            assert ct_site.target_events()[-1]["outcome"] == "rolled-back"
            assert json.loads(ct_site.place.read(f"{records}/workloads/train/record.json"))["pid"] == now["pid"]


@pytest.mark.lab
def test_a_job_that_dies_on_a_full_disk_is_begun_anew(ct_site: Site, records: str) -> None:
    old = ct_site.launch_old("--save-time", "4")
    with ct_site.start("restart", "ct200", "--profile-interval", "60") as controller:
        in_the_stop(ct_site)
        with taken(ct_site, records):
            job = next(event["job_pid"] for event in ct_site.target_events() if event["what"] == "cutover")
            ct_site.place.exec("/bin/kill", "-KILL", str(job))
            out, _ = controller.communicate(timeout=90)
    assert controller.returncode == 0, out.decode()
    assert [seen["pid"] for seen in ct_site.trainers()] != [old]
    assert [event["what"] for event in ct_site.target_events() if event["what"] in ("rung", "job-died", "end")] == [
        "rung",
        "job-died",
        "end",
    ]


@pytest.mark.lab
def test_a_disk_without_room_for_the_reserve_begins_no_job(ct_site: Site, records: str) -> None:
    old = ct_site.launch_old()
    ct_site.place.exec("/bin/sh", "-c", 'head -c 960K /dev/zero >"$0/ballast"', records)
    done = ct_site.restart(status=1)
    assert "the disk is full" in done.stdout
    assert [seen["pid"] for seen in ct_site.trainers()] == [old]
    assert run_files(ct_site) == [f"{records}/ballast"]
    ct_site.place.exec("/bin/rm", f"{records}/ballast")
    assert "has no end" not in ct_site.restart().stdout
