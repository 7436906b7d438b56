"""The host above a container, looked at by the same agent, before anything enters the container: for `deployctl why`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deployctl.errors import DeployError
from deployctl.target import Session
from deployctl.transports.connect import Connections

if TYPE_CHECKING:
    from deployctl.inventory import TargetSpec

WITHIN = 15.0  # seconds that the host may take to let the agent in, and the agent to answer


@dataclass
class Above:
    """What the host said so far: `facts` of its agent, `fault` where it cannot be asked, both None where there is no host above."""

    ct: int | None = None
    session: Session | None = None
    facts: dict[str, Any] | None = None
    fault: str | None = None

    def frozen(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """The whole answer when the container is frozen, since nobody may enter it then; None when it may be entered."""
        if self.facts is None or not self.facts["frozen"]:
            return None
        how = self.facts["frozen"]
        lines = [
            f"frozen: container {self.ct}, {self.facts['group']} on the host",
            f"its first process: pid {self.facts['init']} of the host",
        ]
        return {
            "verdict": "frozen", "detail": f"cgroup-{how}", "confidence": "proven", "also": [], "pid": request.get("pid"),
            "evidence": [*lines, *self._unread()], "unreadable": self.facts["unreadable"], "next": "thaw", "kill_useless": how == "v1",
            "after": request.get("after", []), "signals": {}, "tree": [], "look": request.get("since"), "host": self.facts,
        }  # fmt: skip

    def add(self, answer: dict[str, Any]) -> dict[str, Any]:
        """The container's own answer, with what the host says of that process."""
        if self.session is not None and self.facts is not None:
            look = answer.get("look") or {}
            try:
                self.facts = self.session.ask(
                    "host", within=WITHIN, ct=self.ct, pid=answer.get("pid"), started=look.get("started"), more=True
                )
            except DeployError as error:
                self.fault = error.what
        if self.ct is None:
            return answer
        unread = [name for name in answer["unreadable"] if not (self._knows_freezer() and name.startswith("cgroup:"))]
        lines = [line for line in answer["evidence"] if not line.startswith("unreadable: ")] + self._lines(answer)
        lines += [f"unreadable: {' '.join(unread)}"] if unread else []
        return {**answer, "evidence": [*lines, *self._unread()], "unreadable": unread, "host": self.facts}

    def _knows_freezer(self) -> bool:
        return self.facts is not None and self.facts["init"] is not None and not self.facts["unreadable"]

    def _lines(self, answer: dict[str, Any]) -> list[str]:
        if self.facts is None:
            return []
        process = self.facts["process"]
        lines = [f"host pid: {process['pid']}"] if process else []
        lines += [f"kernel stack: {' < '.join(process['stack'][:8])}"] if process and process["stack"] else []
        named = {line.rpartition(" ")[2] for line in answer["evidence"] if line.startswith("fuse connection:")}
        lines += [
            f"fuse connection {one['connection']}: {one['waiting']} waiting" for one in self.facts["fuse"] if one["connection"] in named
        ]
        return lines + [f"kernel log: {line}" for line in self.facts["log"] if _about(line, process)]

    def _unread(self) -> list[str]:
        if self.fault is not None:
            return [f"unreadable: the host of container {self.ct} ({self.fault})"]
        names = (self.facts or {}).get("unreadable", [])
        return [f"unreadable on the host: {' '.join(names)}"] if names else []


def _about(line: str, process: dict[str, Any] | None) -> bool:
    """Whether a line of the kernel's log is about that process, or about all: a fault of a GPU."""
    return "Xid" in line or (process is not None and str(process["pid"]) in line.replace(":", " ").replace(",", " ").split())


@contextmanager
def above(target: TargetSpec | None, connections: Connections) -> Iterator[Above]:
    """The host of a container, asked for the least; a host that cannot be asked is a fact too, and no error."""
    if target is None or target.ct is None or target.host is None:
        yield Above()
        return
    from deployctl.inventory import TargetSpec

    host = TargetSpec(target.host.name, "host", target.host, None)
    try:
        session = Session(host.name, connections.transport(host), patience=WITHIN)
    except DeployError as error:
        yield Above(target.ct, fault=error.what)
        return
    with session:
        found = Above(target.ct, session)
        try:
            found.facts = session.ask("host", within=WITHIN, ct=target.ct)
        except DeployError as error:
            found.fault = error.what
        yield found
