"""`deployctl hosts check`: which targets can be used, and whether several operators would share their records."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from deployctl.report import usable
from deployctl.target import Session
from tests.lab.lab import Lab
from tests.operators import ANNA, GROUP, As
from tests.site import Site


def hosts(site: Site, **targets: dict[str, object]) -> None:
    data = json.loads((site.home / "hosts.yaml").read_text())
    data["targets"].update(targets)
    (site.home / "hosts.yaml").write_text(json.dumps(data))


def test_a_target_that_can_be_used_says_how_and_nothing_is_made_there(site: Site) -> None:
    done = site.run("hosts", "check", site.place.name)
    container = f"container {site.place.name[2:]}, " if site.lab else ""
    assert done.stdout.startswith(f"{site.place.name}: can be used: {container}python 3.")
    assert f"records in {site.state}" in done.stdout
    assert not site.place.exists(site.state)


@pytest.mark.lab
def test_all_of_the_hosts_file_are_asked_and_one_that_cannot_be_used_keeps_none_from_it(ct_site: Site) -> None:
    hosts(ct_site, off={"host": "pve1", "ct": 202}, here={"local": True, "state": ct_site.state})
    done = ct_site.run("hosts", "check", status=3)
    assert [line.partition(":")[0] for line in done.stdout.splitlines() if "can be used" in line] == ["ct200", "here"]
    assert "container 202 is not running on pve1" in done.stderr


@pytest.mark.lab
@pytest.mark.serial
def test_a_container_that_a_backup_has_locked_is_busy(lab: Lab, ct_site: Site) -> None:
    with lab.config(200, lock="backup"):
        assert "locked on pve1 by a backup" in ct_site.run("hosts", "check", "ct200", status=6).stderr


def test_records_that_cannot_be_kept_are_an_error(local_site: Site) -> None:
    (local_site.home / "file").write_text("")
    hosts(local_site, here={"local": True, "state": str(local_site.home / "file" / "state")})
    assert f"'{local_site.home}/file' is no directory" in local_site.run("hosts", "check", status=3).stderr


def test_an_unknown_target_is_a_wrong_word(local_site: Site) -> None:
    assert "'hree' is no target or group" in local_site.run("hosts", "check", "hree", status=2).stderr


@pytest.mark.lab
def test_json_says_the_same_as_data(lab: Lab, ct_site: Site) -> None:
    found = json.loads(ct_site.run("hosts", "check", "ct200", "--json").stdout)
    assert (found["target"], found["container"], found["directory"]) == ("ct200", 200, ct_site.state)
    assert (found["shared"], found["user"], found["fault"]) == (False, "root", None)


# --- several operators without root


def asked(uid: int, directory: Path) -> dict[str, object]:
    """What the agent says as that user, with what the report needs beside it."""
    with Session("box", As(uid), state=str(directory)) as session:
        return {"target": "box", "container": None, **session.hello, **session.ask("records")}


@pytest.mark.lab
def test_a_directory_of_the_group_is_shared(shared_state: Path) -> None:
    said = usable.lines(asked(ANNA, shared_state))
    assert len(said) == 1
    assert said[0].endswith(f"records in {shared_state}, shared by the group {GROUP}")


@pytest.mark.lab
def test_a_directory_without_the_setgid_bit_is_not_shared(shared_state: Path) -> None:
    os.chmod(shared_state, 0o770)
    said = usable.lines(asked(ANNA, shared_state))
    assert said[0].endswith(f"records in {shared_state}, of {ANNA} alone")
    assert said[1] == "  not shared: another operator without root sees neither these runs nor their lock"


@pytest.mark.lab
def test_a_directory_that_the_user_may_not_write_is_a_fault(shared_state: Path) -> None:
    os.chmod(shared_state, 0o700)
    assert asked(ANNA, shared_state / "below")["fault"] == f"'{shared_state}' may not be written by {ANNA}"
