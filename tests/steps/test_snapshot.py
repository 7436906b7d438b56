"""snapshot: made by the host right before the cut-over, refused where there can be none, old ones gone after a success."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deployctl.errors import DeployError, RefusedError, TransportError
from deployctl.steps.base import Opened, Operations
from deployctl.steps.snapshot import Snapshot
from deployctl.transports.proxmox import Facts
from tests.lab.lab import Lab
from tests.site import Site, in_lab
from tests.steps import RUN, opened, refusal, refused, setting, steps_of

SPARE = 202  # stopped in the lab, so that it is nobody's
NAME = f"deployctl-{RUN}"


def seen(writable: bool = True, **volumes: str) -> Opened:
    """A container whose file systems lie there, on a node with a plain directory and a thin pool."""
    found = Facts(
        200, "pve1", "pve1", "lxc", "RUNNING", "7", {"rootfs": "local-lvm:vm-200-disk-0,size=8G", **volumes}, (), writable,
        {"local": "dir", "local-lvm": "lvmthin"},
    )  # fmt: skip
    return Opened(None, None, None, {}, container=found)


class Shelf:
    """A container's snapshots, kept here; `refuses` is raised instead of making or removing one."""

    vmid = 200

    def __init__(self, *names: str, refuses: DeployError | None = None) -> None:
        self.names, self.refuses = list(names), refuses

    def snapshot(self, name: str, description: str) -> None:
        if self.refuses:
            raise self.refuses
        self.names.append(name)

    def snapshots(self) -> list[str]:
        return list(self.names)

    def drop(self, snapshot: str) -> None:
        if self.refuses:
            raise self.refuses
        self.names.remove(snapshot)


class Told:
    """Events, kept."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def __call__(self, what: str, **fields: Any) -> None:
        self.events.append({"what": what, **fields})


# --- the model


@pytest.mark.parametrize(("text", "keep", "optional"), [("snapshot", 3, False), ("snapshot: {keep: 5, optional: true}", 5, True)])
def test_it_keeps_three_unless_told_otherwise(tmp_path: Path, text: str, keep: int, optional: bool) -> None:
    [step] = steps_of(tmp_path, f"  - {text}\n")
    assert (step.keep, step.optional, step.phase) == (keep, optional, "prepare")  # type: ignore[attr-defined]


def test_none_can_be_kept_is_an_error_with_its_line(tmp_path: Path) -> None:
    line, what, _ = refusal(tmp_path, "  - snapshot: {keep: 0}\n")
    assert line == 7
    assert "keep" in what


def test_two_in_one_playbook_are_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, "  - snapshot\n  - snapshot\n")[:2] == (8, "snapshot: it stands here already, in line 7")


def test_it_adds_nothing_to_the_job() -> None:
    assert Snapshot().compile(setting(), None) == Operations()


# --- what makes it impossible


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (opened(), "the target is no container"),
        (seen(mp0="/srv/data,mp=/data"), "mp0 is bound in from '/srv/data' of the host"),
        (seen(mp1="local:200/vm-200-disk-1.raw,mp=/more"), "mp1 lies on storage 'local' (kind dir)"),
        (seen(writable=False), "its host has lost its cluster (no quorum)"),
    ],
)
def test_what_makes_it_impossible_is_named_in_prepare(found: Opened, why: str) -> None:
    error = refused(lambda: Snapshot().admit(setting(), found, Told()))
    assert (str(error), error.exit_status) == (f"snapshot: there can be no snapshot: {why}", 1)
    assert "optional: true" in error.todo
    Snapshot(optional=True).admit(setting(), found, Told())


@pytest.mark.parametrize("found", [seen(), seen(mp0="far:vol,mp=/data")])
def test_what_is_not_known_to_be_impossible_is_left_to_pct(found: Opened) -> None:
    Snapshot().admit(setting(), found, Told())


def test_pcts_no_is_a_refusal_and_an_optional_one_is_skipped() -> None:
    shelf, told = Shelf(refuses=RefusedError("container 200 can have no snapshot")), Told()
    assert str(refused(lambda: Snapshot().seal(shelf, setting(), told))) == "snapshot: container 200 can have no snapshot"
    Snapshot(optional=True).seal(shelf, setting(), told)
    assert told.events == [{"what": "snapshot-skipped", "why": "container 200 can have no snapshot"}]


# --- old ones


def test_the_newest_stay_and_those_of_people_too() -> None:
    shelf, told = Shelf("deployctl-1", "by-hand", "deployctl-2", "deployctl-3"), Told()
    step = Snapshot(keep=2)
    step.seal(shelf, setting(), told)
    step.after(shelf, setting(), told)
    assert shelf.names == ["by-hand", "deployctl-3", NAME]
    assert told.events[-1] == {"what": "pruned", "names": ["deployctl-1", "deployctl-2"], "keep": 2, "trouble": None}


def test_nothing_to_prune_is_not_spoken_of() -> None:
    told = Told()
    Snapshot().after(Shelf("deployctl-1"), setting(), told)
    assert told.events == []


def test_one_that_cannot_be_removed_is_told_and_does_no_harm() -> None:
    told = Told()
    Snapshot(keep=1).after(Shelf("deployctl-1", "deployctl-2", refuses=TransportError("no", where="ct200")), setting(), told)
    assert told.events == [{"what": "pruned", "names": [], "keep": 1, "trouble": "ct200: no"}]


# --- whole runs


@pytest.fixture
def spare(lab: Lab, tmp_path: Path) -> Iterator[Site]:
    """A site in the spare container, whose playbook makes a snapshot; its configuration is put back."""
    file = lab.configuration(SPARE)
    before = file.read_text()
    lab.start(SPARE)
    site = Site(tmp_path, in_lab(lab, f"ct{SPARE}"), lab)
    push, verify = {"push": {"from": "../train", "to": site.directory, "include": ["*.py"]}}, {"verify": "py_compile"}
    site.write(steps=[push, verify, {"snapshot": {"keep": 2}}, {"stop": site.ladder}, "launch", {"check": site.check}])
    yield site
    site.end()
    lab.stop(SPARE)
    file.write_text(before)


def snapshots(lab: Lab) -> list[str]:
    """The names, as the node's file has them."""
    return [line.strip("[]") for line in lab.configuration(SPARE).read_text().splitlines() if line.startswith("[")]


@pytest.mark.lab
@pytest.mark.serial
class TestRuns:
    def test_a_run_makes_one_before_its_cut_over_and_prunes_after_it(self, spare: Site, lab: Lab) -> None:
        for name in ("deployctl-old-1", "by-hand", "deployctl-old-2"):
            lab.host.call("pct", "snapshot", str(SPARE), name)
        said = spare.restart().stdout
        words = [event["what"] for event in spare.events()]
        own = f"deployctl-{spare.events()[0]['run']}"
        assert snapshots(lab) == ["by-hand", "deployctl-old-2", own]
        assert words.index("verified") < words.index("snapshot") < words.index("cutover") < words.index("pruned") == len(words) - 2
        assert f"pct rollback {SPARE} {own}" in said
        assert len(spare.trainers()) == 1

    def test_a_run_that_is_refused_makes_none(self, spare: Site, lab: Lab) -> None:
        (spare.home / "train" / "throughput.py").write_text("def broken(:\n")
        spare.restart(status=1)
        assert snapshots(lab) == []

    def test_a_bind_mount_refuses_it_before_anything_is_staged(self, spare: Site, lab: Lab) -> None:
        with lab.config(SPARE, mp0="/srv/data,mp=/data"):
            said = spare.restart(status=1).stdout
            assert "a run would end with status 1" in spare.restart("--plan", status=1).stdout
        assert "mp0 is bound in from '/srv/data' of the host" in said
        assert not spare.place.exists(f"{spare.directory}/.deployctl")

    def test_a_lock_while_it_is_made_is_busy_and_nothing_is_changed(self, spare: Site, lab: Lab) -> None:
        old = spare.launch_old()
        with lab.flock(SPARE), lab.settings(lock_wait=0.1):
            spare.write(steps=["snapshot", {"stop": spare.ladder}, "launch"])
            said = spare.restart(status=6).stdout
        assert f"container {SPARE} is locked on pve1" in said
        assert [seen["pid"] for seen in spare.trainers()] == [old]
