"""Nobody reads any more: the terminal was closed, the pipe's reader left, the disk is full. The run ends as it would have."""

from __future__ import annotations

import fcntl
import os
import pty
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import pytest

from tests.site import Site, until


def words(*more: str) -> list[str]:
    return [sys.executable, "-m", "deployctl", *more]


def in_the_stop(site: Site) -> bool:
    return any(event["what"] == "rung" for event in site.target_events())


def test_a_terminal_that_is_closed_in_the_cut_over_detaches(local_site: Site) -> None:
    local_site.launch_old("--save-time", "1.5")
    ours, theirs = pty.openpty()
    own: dict[str, Any] = {"stdin": theirs, "stdout": theirs, "stderr": theirs, "start_new_session": True}
    with subprocess.Popen(
        words("restart", "here", "--profile-interval", "60"), cwd=local_site.home, env=local_site.environment(),
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0), **own,
    ) as controller:  # fmt: skip
        os.close(theirs)
        until("a signal has gone out", lambda: in_the_stop(local_site))
        os.close(ours)
        assert controller.wait(30) == 7
    assert (local_site.events()[-1]["what"], local_site.events()[-1]["outcome"]) == ("end", "detached")
    until("the job has come to its end", lambda: local_site.target_events()[-1]["what"] == "end")
    assert local_site.target_events()[-1]["status"] == 0


def test_a_reader_that_leaves_ends_no_run(local_site: Site) -> None:
    local_site.launch_old()
    with local_site.start("restart", "here", "--profile-interval", "60") as controller:
        assert controller.stdout is not None and controller.stderr is not None
        while b"INT to pid" not in controller.stdout.readline():
            pass
        controller.stdout.close()
        assert (controller.wait(30), controller.stderr.read()) == (0, b"")
    assert (local_site.events()[-1]["what"], local_site.events()[-1]["status"]) == ("end", 0)


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_full_disk_under_the_output_ends_no_run(local_site: Site, stream: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            words("restart", "here", *(["--quiet"] if stream == "stderr" else [])), cwd=local_site.home, env=local_site.environment(),
            check=False, timeout=60, **{stream: full},
        )  # fmt: skip
    assert done.returncode == 0
    assert local_site.events()[-1]["outcome"] == "running"


@pytest.mark.parametrize("more", [{"LC_ALL": "C", "LANG": "C"}, {"PYTHONIOENCODING": "ascii"}, {"PYTHONIOENCODING": "latin-1"}])
def test_a_letter_that_the_stream_cannot_say_is_shown_as_an_escape(local_site: Site, more: dict[str, str]) -> None:
    local_site.command += ["--größe", "日本 🚀"]
    local_site.write()
    environment = {**local_site.environment(), **more}
    done = subprocess.run(words("restart", "here", "--plan"), cwd=local_site.home, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\u65e5" in done.stdout or "日本".encode() in done.stdout


def test_output_that_was_closed_before_is_none(local_site: Site) -> None:
    closed = f"exec '{sys.executable}' -m deployctl status here >&- 2>&-"
    assert subprocess.run(["sh", "-c", closed], cwd=local_site.home, env=local_site.environment(), check=False, timeout=60).returncode == 0


def test_a_listing_ends_well_when_its_reader_left(local_site: Site) -> None:
    listing = f"'{sys.executable}' -m deployctl history --on here --json | head -c 1"
    local_site.restart()
    done = subprocess.run(["bash", "-o", "pipefail", "-c", listing], cwd=local_site.home, env=local_site.environment(), check=True,
                          capture_output=True, timeout=60)  # fmt: skip
    assert (done.stdout, done.stderr) == (b"{", b"")
