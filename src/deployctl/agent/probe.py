"""Conditions of a check that ask somebody: a command that ends with 0, a page that answers. Loopback only, nothing follows a redirect."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import time
from typing import Any, Dict, List, Optional

from . import become, environment, procfs, starts
from .condition import Condition

PATIENCE = 5.0  # seconds for one answer
KEPT = 1 << 16  # bytes of what a command says


class Command(Condition):
    """Passes when the command ends with status 0; until then it is run again. It runs as the workload does, but for the mark."""

    again = 1.0  # seconds between two starts

    def __init__(self, job: Any, argv: List[str]) -> None:
        self.job, self.argv = job, argv
        self.shown = " ".join(map(shlex.quote, argv))
        super().__init__("command", "'%s' was not started" % self.shown)
        self._child: Optional[subprocess.Popen[bytes]] = None
        self._said = b""
        self._next = 0.0

    def look(self, left: float) -> None:
        """Starts it, or hears whether it has ended."""
        if self.met:
            return
        if self._child is None:
            if time.monotonic() >= self._next:
                self._start()
            return
        status = self._child.poll()
        self._hear()
        if status is None:
            self.seen = "'%s' has not ended" % self.shown
            return
        self.met = status == 0
        words = self._said.decode("utf-8", "replace").strip().splitlines()
        how = "by signal %d" % -status if status < 0 else "with status %d" % status
        self.seen = "'%s' ended %s%s" % (self.shown, how, ": " + words[-1][:400] if words else "")
        self.close()

    def _start(self) -> None:
        user = environment.user_of(self.job.workload["user"])
        groups = starts.groups_of(self.job.workload)
        changes = user if user.uid != os.geteuid() or groups is not None else None
        inherited = procfs.environment(self.job.launched["pid"]) or {}
        surroundings = {name: text for name, text in inherited.items() if not name.startswith("DEPLOYCTL_")}

        def prepare() -> None:
            become.plain_signals()
            become.identity(changes, groups)

        self._said, self._next = b"", time.monotonic() + self.again
        try:
            self._child = subprocess.Popen(
                self.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=surroundings,
                cwd=self.job.record["directory"], start_new_session=True,
                preexec_fn=prepare,  # noqa: PLW1509 - a job has one thread
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError) as error:
            self.seen = "'%s' cannot be started: %s" % (self.shown, getattr(error, "strerror", None) or error)
            return
        assert self._child.stdout is not None
        os.set_blocking(self._child.stdout.fileno(), False)

    def _hear(self) -> None:
        """Takes what it has said so far, so that it never waits for a reader."""
        assert self._child is not None
        assert self._child.stdout is not None
        try:
            while True:
                piece = os.read(self._child.stdout.fileno(), KEPT)
                if not piece:
                    return
                self._said = (self._said + piece)[-KEPT:]
        except BlockingIOError:
            pass

    def close(self) -> None:
        """Ends it with everything that it started in its session's own group."""
        if self._child is None:
            return
        try:
            os.killpg(self._child.pid, signal.SIGKILL)
        except OSError:
            pass  # it has ended
        self._child.wait()
        assert self._child.stdout is not None
        self._child.stdout.close()
        self._child = None


class Http(Condition):
    """Passes when the address answers with a status that is wanted and, where asked, a text that matches.

    operation: url (http, loopback), status (list of numbers; empty: 200 to 299), contains (regular expression or null).
    """

    pace = 0.5

    def __init__(self, operation: Dict[str, Any]) -> None:
        self.operation = operation
        super().__init__(str(operation["url"]), "%(url)s was not asked" % operation)

    def look(self, left: float) -> None:
        """Asks once."""
        import http.client  # what costs a start 20 ms is paid by the check that needs it
        from urllib.parse import urlsplit

        parts = urlsplit(self.operation["url"])
        patience = max(0.1, min(PATIENCE, left))
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=patience)
        try:
            connection.request("GET", (parts.path or "/") + ("?" + parts.query if parts.query else ""), headers={"User-Agent": "deployctl"})
            self._judge(connection.getresponse(), time.monotonic() + patience)
        except (OSError, http.client.HTTPException) as error:
            self.seen = "%s does not answer: %s" % (self.name, getattr(error, "strerror", None) or error or type(error).__name__)
        finally:
            connection.close()

    def _judge(self, response: Any, until: float) -> None:
        wanted, pattern = self.operation["status"], self.operation["contains"]
        self.seen = "%s answers with status %d" % (self.name, response.status)
        if response.status not in wanted if wanted else not 200 <= response.status <= 299:
            return
        if pattern is None:
            self.met = True
            return
        body = b""
        while len(body) < KEPT and time.monotonic() < until:
            piece = response.read1(KEPT)
            body += piece
            self.met = re.search(pattern, body.decode("utf-8", "replace")) is not None
            if self.met or not piece:
                break
        if not self.met:
            self.seen += ", and nothing in it matches '%s'" % pattern
