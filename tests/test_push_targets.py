"""A push into a container with ids of its own: names are the container's, and so are the ids; on both ways there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import _site
from tests.site import Site


@pytest.fixture
def unprivileged(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """A site in the unprivileged container: its root is uid 100000 of the host."""
    yield from _site(request, tmp_path, "ct201")


def push(site: Site, **fields: object) -> None:
    site.write(steps=[{"push": {"from": "../train", "to": f"{site.directory}/app", "include": ["*.py"], **fields}}])


@pytest.mark.lab
@pytest.mark.parametrize("via", ["push", "session"])
def test_owner_and_group_are_those_of_the_container(unprivileged: Site, via: str) -> None:
    push(unprivileged, owner="trainer", group="root", mode="u=rw,g=r,o=", via=via)
    done = unprivileged.restart()
    assert "2 new files in place" in done.stdout
    listed = unprivileged.place.exec("/usr/bin/find", f"{unprivileged.directory}/app", "-name", "*.py", "-printf", "%u %g %m\n")
    assert listed.stdout.decode().splitlines() == ["trainer root 640"] * 2
    assert "nothing to send" in unprivileged.restart().stdout


@pytest.mark.lab
def test_an_owner_that_the_container_does_not_have_is_refused(unprivileged: Site) -> None:
    push(unprivileged, owner="200000")
    assert "uid 200000 does not exist in this container" in unprivileged.restart(status=1).stdout
    assert not unprivileged.place.exists(f"{unprivileged.directory}/app")
