"""Who leaves in prepare leaves nothing: Ctrl-C, a service manager's SIGTERM, a laptop that falls asleep."""

from __future__ import annotations

import signal
import time

import pytest

from tests.site import Site, until

HELD = "import fcntl, sys\ntry: fcntl.flock(open(sys.argv[1]), fcntl.LOCK_EX | fcntl.LOCK_NB)\nexcept OSError: print('held')"


def held(site: Site) -> bool:
    return "held" in site.place.python(HELD, f"{site.state}/workloads/train/lock")


def pushing(site: Site) -> bool:
    """Whether the run is about to push: its place beside the destination is made, and nothing has arrived."""
    return site.place.exists(f"{site.directory}/.deployctl")


@pytest.mark.lab
@pytest.mark.serial
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_prepare_leaves_everything_as_it_was(ct_site: Site, number: signal.Signals) -> None:
    old = ct_site.launch_old()
    before = [path for path in ct_site.place.listing(ct_site.directory) if "checkpoints" not in path]
    assert ct_site.lab is not None
    with ct_site.lab.settings(delay=3.0), ct_site.start("restart", "ct200") as controller:
        until("the push has begun", lambda: pushing(ct_site))
        controller.send_signal(number)
        out, err = controller.communicate(timeout=30)
    assert controller.returncode == 130, (out, err)
    assert b"nothing was changed" in out
    assert [seen["pid"] for seen in ct_site.trainers()] == [old]
    assert [path for path in ct_site.place.listing(ct_site.directory) if "checkpoints" not in path] == before
    assert not held(ct_site)
    assert ct_site.events()[-1]["outcome"] == "interrupted"
    assert ct_site.target_events()[-1]["outcome"] == "interrupted"


# Runs in the target: the processes that have this word among theirs, without this one.
WITH_WORD = """
import os, sys
for name in filter(str.isdigit, os.listdir("/proc")):
    try:
        words = open("/proc/%s/cmdline" % name, "rb").read().split(b"\\0")
        alive = open("/proc/%s/stat" % name).read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        continue
    if alive and sys.argv[1].encode() in words and int(name) != os.getpid():
        print(name)
"""


def test_an_interrupt_ends_a_check_that_runs_in_the_target(site: Site) -> None:
    old = site.launch_old()
    word = f"checked-by-{site.script}"
    verify = {"verify": {"command": ["sh", "-c", "sleep 600 & sleep 600", word]}}
    push = {"push": {"from": "../train", "to": site.directory, "include": ["*.py"]}}
    site.write(steps=[push, verify, {"stop": site.ladder}, "launch"])
    with site.start("restart", site.place.name) as controller:
        until("the check runs", lambda: site.place.python(WITH_WORD, word))
        assert site.staged()
        began = time.monotonic()
        controller.send_signal(signal.SIGINT)
        out, err = controller.communicate(timeout=30)
    assert time.monotonic() - began < 5
    assert controller.returncode == 130, (out, err)
    assert b"nothing was changed" in out
    assert not held(site)
    assert not site.place.exists(f"{site.directory}/.deployctl")
    assert site.place.python(WITH_WORD, word) == ""
    assert site.target_events()[-1]["outcome"] == "interrupted"
    assert [seen["pid"] for seen in site.trainers()] == [old]


@pytest.mark.lab
@pytest.mark.serial
def test_a_silent_controller_loses_its_lock_by_the_lease(ct_site: Site) -> None:
    ct_site.launch_old()
    assert ct_site.lab is not None
    with ct_site.lab.settings(delay=3.0), ct_site.start("restart", "ct200") as controller:
        until("the push has begun", lambda: pushing(ct_site))
        controller.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        assert held(ct_site)
        until("the lock is free", lambda: not held(ct_site), 40)
        assert time.monotonic() - began > 20
        assert not pushing(ct_site)
        controller.send_signal(signal.SIGCONT)
        out, _ = controller.communicate(timeout=30)
    assert controller.returncode == 3, out.decode()
    assert len(ct_site.trainers()) == 1
