"""A full disk: before the cut-over nothing changes; from the first signal on the end is a true one and the workload runs."""

from __future__ import annotations

import pytest

from tests.site import Site, until


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
def test_records_that_cannot_be_written_stop_no_restart(ct_site: Site) -> None:
    """The file system of the records fills in the stop: the job's reserve holds its last words."""
    ct_site.place.exec("/bin/mkdir", ct_site.state)
    ct_site.place.exec("/bin/mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", ct_site.state)
    try:
        old = ct_site.launch_old("--save-time", "2")
        with ct_site.start("restart", "ct200", "--profile-interval", "60") as controller:
            until("the stop has begun", lambda: any(event["what"] == "rung" for event in ct_site.target_events()))
            ct_site.place.exec("/bin/sh", "-c", 'cat /dev/zero >"$0/ballast" 2>/dev/null; true', ct_site.state)
            out, _ = controller.communicate(timeout=90)
        assert controller.returncode == 0, out.decode()
        [now] = ct_site.trainers()
        assert now["pid"] != old
        assert "--profile-interval=60" in now["argv"]
        assert ct_site.target_events()[-1]["what"] == "end"
        assert f"pid {now['pid']}" in ct_site.run("status", "ct200").stdout
    finally:
        for seen in ct_site.trainers():
            ct_site.place.exec("/bin/kill", "-KILL", str(seen["pid"]), check=False)
        ct_site.place.exec("/bin/umount", "-l", ct_site.state)
