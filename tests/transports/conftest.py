"""Things for the tests of transports: a directory at the far side, a file of ours, an sshd of our own on loopback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.transports.contract import directory, source
from tests.transports.sshd import Server

__all__ = ["directory", "source"]


@pytest.fixture
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """Starts an sshd with these lines on top of its configuration, and ends it after the test."""
    servers: list[Server] = []

    def start(*lines: str, keys: tuple[str, ...] = ("ed25519",)) -> Server:
        servers.append(Server(tmp_path_factory.mktemp("sshd"), lines, keys))
        return servers[-1]

    yield start
    for server in servers:
        server.end()


@pytest.fixture
def server(serve: Callable[..., Server]) -> Server:
    """A plain sshd."""
    return serve()


@pytest.fixture(autouse=True)
def no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent of whoever runs the tests stays out of them."""
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


@pytest.fixture
def far(tmp_path: Path) -> Path:
    """A directory of this machine, which is the far side too."""
    return tmp_path
