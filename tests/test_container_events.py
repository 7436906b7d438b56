"""What happens to a container around a run: a backup's lock, a stop, a restart, a migration. Each run says which, and with what status."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from deployctl import target
from deployctl.errors import TransportError
from deployctl.transports.pct import Pct
from deployctl.transports.ssh import Ssh
from tests.lab.lab import Lab
from tests.site import Site, in_lab, until
from tests.transports.sshd import Host

pytestmark = [pytest.mark.lab, pytest.mark.serial]

SPARE = 202  # stopped in the lab, so that it is nobody's


@pytest.fixture
def spare(lab: Lab, tmp_path: Path) -> Iterator[Site]:
    """A site in the spare container, which runs; it is stopped afterwards."""
    lab.start(SPARE)
    site = Site(tmp_path, in_lab(lab, f"ct{SPARE}"), lab)
    yield site
    if lab.state(SPARE) == "STOPPED":
        lab.start(SPARE)
    site.end()
    lab.stop(SPARE)


def pushing(site: Site) -> bool:
    """Whether the run is in prepare: its place beside the destination is made."""
    return site.place.exists(f"{site.directory}/.deployctl")


def stopping(site: Site) -> bool:
    """Whether the run is in its cut-over: a signal went out."""
    return any(event["what"] == "rung" for event in site.events())


def meet(site: Site, there: Callable[[Site], bool], happens: Callable[[], object], *words: str) -> tuple[int, str]:
    """A restart to which that happens when it has come `there`: (exit status, what was said). In prepare the push is held up till then."""
    lab, ct = site.lab, int(site.place.name[2:])
    assert lab
    with lab.settings(lock_wait=60), ExitStack() as held:
        if there is pushing:
            held.enter_context(lab.flock(ct))
        with site.start("restart", site.place.name, *words) as controller:
            until("the run has come there", lambda: there(site))
            happens()
            held.close()
            out, err = controller.communicate(timeout=60)
    return controller.returncode, out.decode() + err.decode()


def slow(site: Site, seconds: str = "5") -> None:
    """A trainer that takes its time to save, so that its stop can be met."""
    site.command = [*site.command[:-1], seconds]
    site.write()


def test_a_locked_container_is_busy_and_nothing_is_changed(ct_site: Site, lab: Lab) -> None:
    old = ct_site.launch_old()
    with lab.config(200, lock="backup"):
        said = ct_site.restart("--wait", "100ms", status=6).stdout
        assert "a run would end with status 6" in ct_site.restart("--plan", status=6).stdout
    assert "container 200 is locked on pve1 by a backup (lock: backup)" in said
    assert [seen["pid"] for seen in ct_site.trainers()] == [old]
    assert not ct_site.place.exists(ct_site.state)


def test_a_lock_that_comes_before_the_cut_over_is_busy_and_nothing_is_changed(ct_site: Site, lab: Lab) -> None:
    old = ct_site.launch_old()
    before = [path for path in ct_site.place.listing(ct_site.directory) if "checkpoints" not in path]
    with ExitStack() as locked:
        status, said = meet(ct_site, pushing, lambda: locked.enter_context(lab.config(200, lock="backup")), "--wait", "100ms")
    assert (status, ct_site.events()[-1]["outcome"]) == (6, "busy"), said
    assert any(event["what"] == "staged" for event in ct_site.events())
    assert [seen["pid"] for seen in ct_site.trainers()] == [old]
    assert [path for path in ct_site.place.listing(ct_site.directory) if "checkpoints" not in path] == before


def _stop(lab: Lab) -> None:
    lab.stop(SPARE)


def _restart(lab: Lab) -> None:
    lab.stop(SPARE)
    lab.start(SPARE)


@pytest.mark.parametrize("happens, said", [(_stop, "is not running"), (_restart, "was restarted")])
def test_a_container_that_ends_in_prepare_is_named(spare: Site, lab: Lab, happens: Callable[[Lab], None], said: str) -> None:
    status, words = meet(spare, pushing, lambda: happens(lab))
    assert status == 3, words
    assert f"container {SPARE} {said}" in words
    assert spare.events()[-1]["outcome"] == "unreachable"


def test_a_container_that_stops_in_the_cut_over_leaves_it_down_until_it_is_resumed(spare: Site, lab: Lab) -> None:
    slow(spare)
    spare.launch_old()
    status, said = meet(spare, stopping, lambda: lab.stop(SPARE))
    assert (status, spare.events()[-1]["outcome"]) == (5, "down"), said
    assert f"container {SPARE} was stopped" in said
    assert f"`pct start {SPARE}`" in said and f"`deployctl resume --on {spare.place.name}`" in said
    lab.start(SPARE)
    told = spare.run("attach", "--on", spare.place.name, status=5)
    assert "deployctl resume" in told.stderr
    spare.run("resume", "--on", spare.place.name)
    assert [seen["argv"][1] for seen in spare.trainers()] == [spare.script]


@pytest.mark.parametrize("there, status", [(pushing, 3), (stopping, 5)])
def test_a_container_that_is_migrated_away_is_named_with_its_node(
    spare: Site, lab: Lab, there: Callable[[Site], bool], status: int
) -> None:
    slow(spare)
    spare.launch_old()
    with ExitStack() as away:

        def migrate() -> None:
            away.enter_context(lab.elsewhere(SPARE, node="pve2"))
            lab.stop(SPARE)

        ended_with, said = meet(spare, there, migrate)
    assert ended_with == status, said
    assert f"container {SPARE} is on node pve2 now" in said


def test_a_stopped_container_is_started_by_a_run_and_by_nothing_else(spare: Site, lab: Lab) -> None:
    spare.target = {"start": True}
    spare.write()
    lab.stop(SPARE)
    for words in (("status", spare.place.name), ("restart", spare.place.name, "--plan")):
        assert "a run starts it" in spare.run(*words, status=3).stderr
    assert lab.state(SPARE) == "STOPPED"
    said = spare.restart().stdout
    assert f"container {SPARE}, after" in said
    assert len(spare.trainers()) == 1


def test_a_frozen_container_is_refused(spare: Site, lab: Lab) -> None:
    lab.freeze(SPARE)
    try:
        restart = spare.run("restart", spare.place.name, "--wait", "100ms", status=3)
        status, plan = (spare.run(*words, status=3) for words in (("status", spare.place.name), ("restart", spare.place.name, "--plan")))
    finally:
        lab.thaw(SPARE)
    for said in (restart.stdout, status.stderr, plan.stderr):
        assert f"`lxc-unfreeze -n {SPARE}`" in said


def test_a_run_waits_for_a_thaw(spare: Site, lab: Lab) -> None:
    lab.freeze(SPARE)
    try:
        with spare.start("restart", spare.place.name) as controller:
            until("it waits", lambda: [event for event in spare.events() if event["what"] == "busy"])
            lab.thaw(SPARE)
            out, err = controller.communicate(timeout=60)
    finally:
        lab.thaw(SPARE)
    assert controller.returncode == 0, (out, err)


def test_a_freeze_that_is_longer_than_the_silence_is_followed_on(spare: Site, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The silence is made short, in this process: a freeze of 30 s would be too long for a test. The session speaks every 5 s."""
    monkeypatch.setattr(target, "SILENCE", 5.5)
    ssh = Ssh(Host("pve1", "pve1", lab.ssh_config))
    slow(spare, "2")
    spare.launch_old()
    with spare.start("restart", spare.place.name) as controller:
        until("it stops", lambda: stopping(spare))
        with target.Session("spare", Pct(ssh, SPARE, "spare"), state=spare.state) as session:
            told = session.follow("attach", run=spare.target_events()[0]["run"])
            assert next(told)["what"] == "begin"
            lab.freeze(SPARE)
            try:
                thaw = threading.Timer(6.0, lab.thaw, [SPARE])
                thaw.start()
                assert list(told)[-1]["what"] == "end"
                thaw.join()
            finally:
                lab.thaw(SPARE)
        controller.communicate(timeout=60)
    ssh.close()
    assert controller.returncode == 0


def test_a_freeze_that_comes_too_late_to_be_seen_is_named_at_the_deadline(spare: Site, lab: Lab) -> None:
    ssh = Ssh(Host("pve1", "pve1", lab.ssh_config))
    lab.freeze(SPARE)
    try:
        with pytest.raises(TransportError, match=f"container {SPARE} is frozen on pve1"):
            target.Session("spare", Pct(ssh, SPARE, "spare"), patience=1.0)
    finally:
        lab.thaw(SPARE)
        ssh.close()
