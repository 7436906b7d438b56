"""Things for tests: the lab, and sites where a trainer runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests import site as sites
from tests.lab.lab import Lab
from tests.operators import GROUP
from tests.site import Site

HERE, PVE, CT200, CT201 = "here", *(pytest.param(name, marks=pytest.mark.lab) for name in ("pve", "ct200", "ct201"))


@pytest.fixture(scope="session")
def lab() -> Lab:
    """The lab that tests/run.sh brought up."""
    return Lab.current()


@pytest.fixture(params=[HERE, CT201])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """A trainer's site on this machine, and in an unprivileged container, which has all of a host and of a container in its way."""
    yield from _site(request, tmp_path, request.param)


@pytest.fixture(params=[HERE, PVE, CT200, CT201])
def every_site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """A trainer's site on a target of each kind."""
    yield from _site(request, tmp_path, request.param)


@pytest.fixture
def local_site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """A trainer's site on this machine."""
    yield from _site(request, tmp_path, "here")


@pytest.fixture
def ct_site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """A trainer's site in the privileged container."""
    yield from _site(request, tmp_path, "ct200")


@pytest.fixture
def shared_state() -> Iterator[Path]:
    """A state directory that the operators of tests/operators.py share."""
    with TemporaryDirectory(dir="/tmp") as made:  # pytest's own directories are root's alone
        os.chmod(made, 0o755)
        state = Path(made, "state")
        state.mkdir()
        os.chown(state, 0, GROUP)
        os.chmod(state, 0o2770)
        yield state


def _site(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> Iterator[Site]:
    lab: Lab | None = None if kind == "here" else request.getfixturevalue("lab")
    place = sites.here() if lab is None else sites.in_lab(lab, kind)
    made = Site(tmp_path, place, lab)
    yield made
    made.end()
