"""A short chaos in CI: the same rounds each time, and a few that nobody has chosen; docs/chaos.md says how the long one is run."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from tests.chaos.__main__ import main

pytestmark = [pytest.mark.lab, pytest.mark.serial]


@pytest.mark.parametrize(("seed", "rounds"), [(28051, 4), (None, 3)], ids=["fixed", "fresh"])
def test_no_invariant_breaks_in_a_short_chaos(seed: int | None, rounds: int, tmp_path: Path) -> None:
    chosen = secrets.randbelow(1 << 31) if seed is None else seed
    words = ["--rounds", str(rounds), "--seed", str(chosen), "--jobs", "3", "--verbose", "--keep", str(tmp_path)]
    assert main(words) == 0, f"seed {chosen}; the table stands above"
