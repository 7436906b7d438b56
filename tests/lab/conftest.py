"""The lab that these tests use: the one that is up, else one of their own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab import debian
from tests.lab.errors import LabError
from tests.lab.lab import Lab

COMMAND = Path(__file__).with_name("lab")


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """A lab that is up; with the systemd container when that costs no debootstrap."""
    if os.geteuid():
        pytest.skip("the lab needs root")
    try:
        yield Lab.current()
    except LabError:
        subprocess.run([COMMAND, "up", *([] if debian.ROOT.exists() else ["--no-systemd"])], check=True, stdout=subprocess.DEVNULL)
        yield Lab.current()
        subprocess.run([COMMAND, "down"], check=True, stdout=subprocess.DEVNULL)
