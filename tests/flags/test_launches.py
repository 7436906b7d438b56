"""Flags from launch to launch, on this machine: kept, dropped, unset, and after a rollback."""

from __future__ import annotations

import json

import pytest

from tests.site import Site

FLAGS = {
    "profile-interval": {"type": "int", "min": 0},
    "seed": {"type": "int"},
    "die-after": {"type": "duration"},
    "level": {"type": "int", "env": "DFLASH_LEVEL"},
}


@pytest.fixture
def flagged(local_site: Site) -> Site:
    local_site.check = {"alive": "300ms"}
    local_site.more = {"flags": FLAGS}
    local_site.write()
    return local_site


def added(site: Site) -> list[str]:
    """What stands in the running line before the words of the playbook."""
    [now] = site.trainers()
    argv: list[str] = now["argv"][2:]
    return argv[: argv.index("--token-budget")]


def told(site: Site, what: str) -> list[dict[str, object]]:
    return [event for event in site.events() if event["what"] == what]


def remembered(site: Site) -> dict[str, list[str]]:
    flags: dict[str, list[str]] = json.loads(site.place.read(f"{site.state}/workloads/train/record.json"))["flags"]
    return flags


def test_flags_are_kept_and_unset_and_what_would_be_dropped_is_named(flagged: Site) -> None:
    flagged.restart("--profile-interval", "60", "--seed", "3", "--level", "2", "--", "--save-time=0.1")
    assert added(flagged) == ["--profile-interval=60", "--seed=3"]
    assert flagged.trainers()[0]["environment"]["DFLASH_LEVEL"] == "2"
    plan = flagged.restart("--plan")
    assert "dropped    --seed 3" in plan.stdout
    assert "- --profile-interval=60" in plan.stdout
    assert "~ --save-time 0.2  (was --save-time=0.1)" in plan.stdout
    flagged.restart("--keep-flags", "--unset", "seed")
    assert added(flagged) == ["--profile-interval=60"]
    assert flagged.trainers()[0]["environment"]["DFLASH_LEVEL"] == "2"
    assert [(event["kept"], event["dropped"]) for event in told(flagged, "flags")] == [
        ({"profile-interval": ["60"], "level": ["2"], "--": ["--save-time=0.1"]}, {})
    ]
    assert remembered(flagged) == {"profile-interval": ["60"], "level": ["2"], "--": ["--save-time=0.1"]}


def test_after_a_rollback_the_flags_are_those_of_what_runs(flagged: Site) -> None:
    flagged.restart("--profile-interval", "60")
    flagged.check = {"alive": "3s"}
    flagged.write()
    done = flagged.restart("--die-after", "100ms", status=1)
    assert "dropped --profile-interval 60, which the last launch had" in done.stdout
    assert added(flagged) == ["--profile-interval=60"]
    assert remembered(flagged) == {"profile-interval": ["60"]}


def test_the_checkpoint_that_the_stop_left_is_found(local_site: Site) -> None:
    local_site.check = {"alive": "300ms"}
    local_site.more = {
        "flags": {"resume": {"type": "path", "env": "DFLASH_RESUME", "newest": "checkpoints/*", "complete": ["/usr/bin/test", "-s"]}}
    }
    local_site.write()
    local_site.launch_old()
    old = local_site.place.listing(f"{local_site.directory}/checkpoints") if local_site.place.exists(local_site.directory) else []
    plan = local_site.restart("--plan")
    assert "DFLASH_RESUME=<newest checkpoints/*>" in plan.stdout
    local_site.restart()
    [now] = local_site.trainers()
    [chosen] = [event for event in local_site.target_events() if event["what"] == "chosen"]
    assert now["environment"]["DFLASH_RESUME"] == chosen["path"]
    assert f"{local_site.directory}/{chosen['path']}" in local_site.place.listing(f"{local_site.directory}/checkpoints")
    assert f"{local_site.directory}/{chosen['path']}" not in old
