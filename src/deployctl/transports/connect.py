"""The transports of a run: the right one for a target, and one connection a host. Opens none by itself."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Literal, Protocol

from deployctl.transports.base import Transport
from deployctl.transports.local import Local
from deployctl.transports.pct import Pct
from deployctl.transports.ssh_config import HostSpec

if TYPE_CHECKING:
    from deployctl.transports.ssh import Ssh


class TargetSpec(Protocol):
    """A target of the hosts file; `host` is set for "ct" and "host", `ct` for "ct"."""

    @property
    def kind(self) -> Literal["ct", "host", "local"]:
        """Which transport leads there."""

    @property
    def name(self) -> str:
        """Its name, for messages."""

    @property
    def host(self) -> HostSpec | None:
        """The machine that ssh reaches."""

    @property
    def ct(self) -> int | None:
        """The container's id on that host."""

    @property
    def start(self) -> bool:
        """Whether a run starts the container when it is stopped."""

    @property
    def nodes(self) -> tuple[HostSpec, ...]:
        """Hosts to which the container may be followed, each named as its node."""


class Connections:
    """Gives transports and closes them all at its end. fabric and paramiko are imported when the first host is asked for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hosts: dict[str, Ssh] = {}
        self._open = ExitStack()

    def __enter__(self) -> Connections:
        return self

    def __exit__(self, *exc: object) -> None:
        self._hosts.clear()
        self._open.close()

    def transport(self, target: TargetSpec) -> Transport:
        """The transport to a target. Nothing is contacted yet."""
        if target.kind == "local" or target.host is None:
            return Local(target.name)
        host = self._host(target.host)
        if target.ct is None:
            return host
        nodes = {node.name: node for node in target.nodes}
        return Pct(host, target.ct, target.name, target.start, lambda name: self._host(nodes[name]) if name in nodes else None)

    def _host(self, spec: HostSpec) -> Ssh:
        from deployctl.transports.ssh import Ssh

        with self._lock:
            if spec.name not in self._hosts:
                host = self._hosts[spec.name] = Ssh(spec)
                self._open.callback(host.close)
            return self._hosts[spec.name]
