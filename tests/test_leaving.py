"""Who leaves a run that is in its cut-over leaves a job that goes on: one signal or several, whatever command followed it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.site import Site, until
from tests.test_job import happened, in_the_stop, kill

LOGOUT, IMPATIENT = (signal.SIGTERM, signal.SIGHUP), (signal.SIGINT, signal.SIGINT)


@contextmanager
def stopping(site: Site) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A restart whose INT was taken and that waits; in the end the old process ends and the job comes to its end."""
    old = site.launch_old("--save-time", "600")
    site.ladder = ["INT 10m"]
    site.write()
    with site.start("restart", site.place.name, "--profile-interval", "60") as controller:
        in_the_stop(site)
        yield controller, old
    kill(site, old)
    until("the job has come to its end", lambda: happened(site, "end"))
    assert happened(site, "end")[-1]["status"] == 0


def left(site: Site, controller: subprocess.Popen[bytes]) -> str:
    """What it said; asserts that it ended with 7, and that its journal knows."""
    out, err = controller.communicate(timeout=30)
    assert controller.returncode == 7, (out, err)
    assert b"Traceback" not in err
    return out.decode() + err.decode()


def test_a_signal_in_the_cut_over_detaches_and_says_what_the_job_does(site: Site) -> None:
    with stopping(site) as (controller, _):
        controller.send_signal(signal.SIGINT)
        said = left(site, controller)
        run = happened(site, "begin")[0]["run"]
        assert "interrupted; the job goes on in the target, in stop" in said
        assert f"deployctl attach {run} --on {site.place.name}" in said
        assert site.events()[-1]["outcome"] == "detached"


@pytest.mark.parametrize(("pair", "gap"), [(LOGOUT, 0.0), (IMPATIENT, 0.003), (LOGOUT, 0.02), (IMPATIENT, 0.15)])
def test_a_second_signal_changes_nothing(local_site: Site, pair: tuple[signal.Signals, signal.Signals], gap: float) -> None:
    with stopping(local_site) as (controller, _):
        for number in pair:
            controller.send_signal(number)
            time.sleep(gap)
        left(local_site, controller)
        assert local_site.events()[-1]["outcome"] == "detached"


def test_a_signal_that_was_ignored_from_the_start_stays_so(local_site: Site) -> None:
    local_site.launch_old()
    words = {"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)}
    with local_site.start("restart", "here", "--profile-interval", "60", **words) as controller:
        in_the_stop(local_site)
        controller.send_signal(signal.SIGHUP)
        controller.communicate(timeout=60)
    assert controller.returncode == 0


@pytest.mark.parametrize("command", ["attach", "cancel"])
def test_who_follows_may_leave(local_site: Site, command: str) -> None:
    old = local_site.launch_old("--save-time", "600")
    local_site.ladder = ["INT 10m"]
    local_site.write()
    with local_site.start("restart", "here", "--profile-interval", "60") as controller:
        run = in_the_stop(local_site)["run"]
        with local_site.start(command, run, "--on", "here") as person:
            assert person.stdout is not None
            while b"INT to pid" not in person.stdout.readline():
                pass
            person.send_signal(signal.SIGINT)
            assert "the job goes on in the target, in stop" in left(local_site, person)
        kill(local_site, old)
        controller.communicate(timeout=60)
    assert controller.returncode == (1 if command == "cancel" else 0)


def heeds(pid: int) -> bool:
    """Whether the process has a handler for HUP: it is past the beginning, where an interrupt is Python's own business."""
    status = Path(f"/proc/{pid}/status").read_text()
    return bool(int(status.partition("SigCgt:")[2].split()[0], 16) & 1)


@pytest.mark.parametrize("later", [0.0, 0.1])
def test_an_interrupt_while_it_is_being_imported_is_no_traceback(local_site: Site, later: float) -> None:
    with local_site.start("restart", "here", "--plan") as controller:
        until("it heeds signals", lambda: heeds(controller.pid))
        time.sleep(later)
        controller.send_signal(signal.SIGINT)
        _, err = controller.communicate(timeout=30)
    assert controller.returncode in (130, 0)
    assert b"Traceback" not in err


LOST = """
import gc, os, signal, sys, time
from deployctl.cli import interrupts
from deployctl.errors import Interrupted
interrupts.heed()
class Slow:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)
try:
    Slow()
    print("lost", flush=True)
    time.sleep(20)
except Interrupted:
    print("heard")
"""


def test_an_interrupt_that_falls_into_a_finalizer_is_heard_a_moment_later() -> None:
    done = subprocess.run([sys.executable, "-c", LOST], capture_output=True, text=True, timeout=15, check=True)
    assert (done.stdout.split(), done.stderr) == (["lost", "heard"], "")
