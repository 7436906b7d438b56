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
    site.place.exec("/bin/sh", "-c", 'cat /dev/zero >"$0/ballast" 2>/dev/null; cat /dev/zero >>"$0/ballast" 2>/dev/null; true', site.directory)


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
        old = small.launch_old()
        fill(small)
        done = small.restart(status=None)
        assert done.returncode in (1, 3)
        assert [seen["pid"] for seen in small.trainers()] == [old]
        free(small)
        assert small.staged() == []
    finally:
        done_with(small)


@pytest.mark.lab
def test_a_disk_that_fills_in_the_stop_ends_with_the_new_one_running(small: Site) -> None:
    try:
        old = small.launch_old("--save-time", "2")
        with small.start("restart", "ct200", "--profile-interval", "60") as controller:
            until("the stop has begun", lambda: any(event["what"] == "rung" for event in small.target_events()))
            fill(small)
            out, _ = controller.communicate(timeout=90)
        pids = [seen["pid"] for seen in small.trainers()]
        assert len(pids) == (0 if controller.returncode == 5 else 1), out.decode()
        assert old not in pids
        assert controller.returncode in (0, 1, 5)
        assert small.target_events()[-1]["what"] == "end", "the reserve holds the last word"
        assert small.target_events()[-1]["status"] == controller.returncode
    finally:
        done_with(small)
