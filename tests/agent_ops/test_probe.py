"""A command and a page that a check asks, without a job around them."""

from __future__ import annotations

import os
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, ClassVar

import pytest

from deployctl.agent import probe
from tests.agent_ops import until


class Job:
    """What a command needs of a job: a process whose environment it has, a directory, a user."""

    def __init__(self, directory: str) -> None:
        self.launched, self.record, self.workload = {"pid": os.getpid()}, {"directory": directory}, {"user": None}


@pytest.mark.parametrize(
    ("argv", "seen"),
    [
        (["sh", "-c", "yes | head -c 300000; echo no such >&2; exit 3"], " ended with status 3: no such"),
        (["sh", "-c", "kill -KILL $$"], " ended by signal 9"),
        (["no-such-program"], "'no-such-program' cannot be started: No such file or directory"),
    ],
)
def test_a_command_that_fails_is_shown_with_its_last_line(tmp_path: Any, argv: list[str], seen: str) -> None:
    command = probe.Command(Job(str(tmp_path)), argv)
    until(lambda: command.look(1.0) or command.seen.endswith(seen), seen)
    assert not command.met


def test_a_command_that_never_ends_is_ended_with_all_that_it_started(tmp_path: Any) -> None:
    command = probe.Command(Job(str(tmp_path)), ["sh", "-c", "sleep 600 & echo $! $$ >pids.new; mv pids.new pids; wait"])
    until(lambda: command.look(1.0) or ((tmp_path / "pids").exists() and command.seen.endswith("has not ended")), "the start")
    command.close()
    pids = (tmp_path / "pids").read_text().split()
    assert len(pids) == 2
    until(lambda: not any(alive(pid) for pid in pids), "the end of both")


def alive(pid: str) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class Page(BaseHTTPRequestHandler):
    """/moved leads elsewhere, all else is there."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(302 if self.path == "/moved" else 204 if self.path == "/empty" else 200)
        self.send_header("Location", "/there")
        self.end_headers()
        if self.path != "/empty":
            self.wfile.write("ready, Ä".encode())

    def log_message(self, *_: object) -> None:
        """Nothing is written."""


@pytest.mark.parametrize(
    ("path", "wanted", "met", "seen"),
    [
        ("/a?b=c", {}, True, "answers with status 200"),
        ("/empty", {}, True, "answers with status 204"),
        ("/empty", {"status": [200]}, False, "answers with status 204"),
        ("/moved", {}, False, "answers with status 302"),
        ("/moved", {"status": [302]}, True, "answers with status 302"),
        ("/a", {"contains": "Ä$"}, True, "answers with status 200"),
        ("/a", {"contains": "lost"}, False, "answers with status 200, and nothing in it matches 'lost'"),
    ],
)
def test_a_page_is_judged_by_its_status_and_its_text(path: str, wanted: dict[str, Any], met: bool, seen: str) -> None:
    Page.asked.clear()
    with HTTPServer(("127.0.0.1", 0), Page) as server:
        serving = threading.Thread(target=server.handle_request)
        serving.start()
        url = f"http://127.0.0.1:{server.server_port}{path}"
        page = probe.Http({"url": url, "status": [], "contains": None, **wanted})
        page.look(20.0)
        serving.join()
    assert (page.met, page.seen) == (met, f"{url} {seen}")
    assert Page.asked == [path], "a redirect is not followed"


def test_a_page_that_nobody_serves_does_not_answer() -> None:
    page = probe.Http({"url": "http://127.0.0.1:1/", "status": [], "contains": None})
    page.look(1.0)
    assert (page.met, page.seen) == (False, "http://127.0.0.1:1/ does not answer: Connection refused")
