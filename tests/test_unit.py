"""A program in a unit of systemd: started by it, and stopped, watched and rolled back as any other. Seen in the container with systemd."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from deployctl.steps.launch import Launch
from tests import site as sites
from tests.lab.lab import Lab
from tests.site import Site, until
from tests.steps import setting, steps_of

UNIT = {"launch": {"as": "systemd"}}


@pytest.fixture
def unit_site(lab: Lab, tmp_path: Path) -> Iterator[Site]:
    """A trainer's site in the container that runs systemd; its launch makes a unit."""
    if not lab.made["systemd"]:
        pytest.fail("the lab is up without its systemd container: `tests/lab/lab up` brings it")
    made = Site(tmp_path, sites.in_lab(lab, "ct210"), lab)
    made.workload = {"name": f"train-{tmp_path.name[-8:]}".replace("_", "-"), "environment": {"API_TOKEN": "hunter2"}}
    made.ladder, made.check = ["KILL 10s"], {"alive": "100ms", "within": "20s"}
    write(made)
    yield made
    made.end()


def write(site: Site, **check: str) -> None:
    site.more = {"steps": [{"stop": site.ladder}, UNIT, {"check": {**site.check, **check}}]}
    site.write()


def name(site: Site) -> str:
    return str(site.workload["name"])


def show(site: Site, unit: str, *properties: str) -> list[str]:
    words = [f"--property={text}" for text in properties]
    return site.place.exec("/usr/bin/systemctl", "show", "--value", *words, unit).stdout.decode().split("\n")


def unit_of(site: Site) -> str:
    record = json.loads(site.place.read(f"{site.state}/workloads/{name(site)}/record.json"))
    return str(record["unit"])


def test_a_launch_says_that_it_is_a_unit(tmp_path: Path) -> None:
    [launch] = steps_of(tmp_path, "  - launch: {as: systemd}\n")
    assert launch == Launch.model_validate({"as": "systemd"})
    assert launch.describe() == {"step": "launch", "as": "systemd"}
    assert launch.compile(setting(), None).do[0]["unit"] is True


@pytest.mark.lab
def test_a_target_without_systemd_refuses_a_unit(ct_site: Site) -> None:
    write(ct_site)
    done = ct_site.restart(status=1)
    assert "no unit of systemd can be made: systemd does not run here" in done.stdout
    assert ct_site.trainers() == []


@pytest.mark.lab
def test_a_unit_is_started_and_stopped_and_started_again(unit_site: Site) -> None:
    unit_site.restart()
    [first] = unit_site.trainers()
    old = unit_of(unit_site)
    assert show(unit_site, f"{old}.service", "ActiveState")[0] == "active"
    assert f"/{old}.service" in unit_site.place.read(f"/proc/{first['pid']}/cgroup").decode()
    assert first["environment"]["API_TOKEN"] == "hunter2"
    whole = unit_site.place.exec("/usr/bin/systemctl", "show", f"{old}.service").stdout
    assert b"hunter2" not in whole, "everybody may read the properties of a unit"
    unit_site.restart("--profile-interval", "60")
    [second] = unit_site.trainers()
    assert second["pid"] != first["pid"]
    assert unit_of(unit_site) != old
    assert f"unit {unit_of(unit_site)}.service" in unit_site.run("status", f"ct210:{name(unit_site)}").stdout
    until("the old unit is gone", lambda: show(unit_site, f"{old}.service", "ActiveState")[0] == "inactive")
    left = unit_site.place.listing(f"{unit_site.state}/workloads/{name(unit_site)}/runs")
    assert [path for path in left if not path.endswith(".jsonl")] == []


@pytest.mark.lab
def test_what_systemd_stops_is_known_to_status(unit_site: Site) -> None:
    unit_site.restart()
    [seen] = unit_site.trainers()
    unit_site.place.exec("/usr/bin/systemctl", "stop", f"{unit_of(unit_site)}.service")
    done = unit_site.run("status", f"ct210:{name(unit_site)}")
    assert "does not run: ended " in done.stdout
    assert f"pid {seen['pid']}" not in done.stdout.splitlines()[0]


@pytest.mark.lab
def test_what_ran_in_a_unit_is_brought_back_in_one(unit_site: Site) -> None:
    unit_site.restart()
    write(unit_site, log="no such line", within="500ms")
    done = unit_site.restart(status=1)
    assert "rolled back" in done.stdout
    [now] = unit_site.trainers()
    assert f"/{unit_of(unit_site)}.service" in unit_site.place.read(f"/proc/{now['pid']}/cgroup").decode()
    assert unit_of(unit_site).endswith("-before")


@pytest.mark.lab
def test_a_unit_s_program_that_cannot_be_executed_is_explained(unit_site: Site) -> None:
    unit_site.place.write(f"{unit_site.directory}/a.bin", b"\x7fELF rubbish")
    unit_site.place.exec("/bin/chmod", "755", f"{unit_site.directory}/a.bin")
    unit_site.command[:] = [f"{unit_site.directory}/a.bin", unit_site.script]
    write(unit_site)
    done = unit_site.restart(status=1)
    assert "cannot be executed: Exec format error" in done.stdout
