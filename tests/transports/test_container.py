"""What a host says of a container, and what becomes of it before anything enters: in the lab, against the files of a Proxmox node."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from deployctl.errors import BusyError, DeployError, TransportError
from deployctl.transports import proxmox
from deployctl.transports.container import Container
from deployctl.transports.ssh import Ssh
from tests.lab.lab import Lab
from tests.site import until
from tests.transports.sshd import Host

pytestmark = [pytest.mark.lab, pytest.mark.serial]


@pytest.fixture(scope="module")
def host(lab: Lab) -> Iterator[Ssh]:
    """The lab's host, over one connection for all tests here."""
    ssh = Ssh(Host("pve1", "pve1", lab.ssh_config))
    yield ssh
    ssh.close()


@pytest.fixture
def spare(lab: Lab) -> Iterator[Lab]:
    """The lab, whose stopped container 202 may be started, frozen and written to; all is put back."""
    file = lab.configuration(202)
    before = file.read_text()
    yield lab
    file.write_text(before)
    if lab.state(202) == "FROZEN":
        lab.thaw(202)
    if lab.state(202) != "STOPPED":
        lab.stop(202)


class Wrapped:
    """The host, each program started through another one."""

    container: None = None

    def __init__(self, host: Ssh, *prefix: str) -> None:
        self.name, self._host, self._prefix = "pve1", host, prefix

    def open(self, argv: Sequence[str]) -> Any:
        return self._host.open([*self._prefix, *argv])


class Heard:
    """What was said, by its word."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, what: str, **fields: Any) -> None:
        self.events.append((what, fields))

    def words(self) -> list[str]:
        return [what for what, _ in self.events]


def container(host: Any, vmid: int, **more: Any) -> Container:
    return Container(host, vmid, f"ct{vmid}", **more)


def no(act: Callable[[], object]) -> tuple[str, int, str]:
    """(words, exit status, what to do) of the error that the act ends with."""
    with pytest.raises(DeployError) as caught:
        act()
    return str(caught.value), caught.value.exit_status, caught.value.todo


class TestFacts:
    def test_a_running_container_is_described_without_pct(self, lab: Lab, host: Ssh) -> None:
        proxmox.facts(host, 200)
        calls, connections = len(lab.calls()), lab.connections()
        found = proxmox.facts(host, 201)
        assert (found.node, found.owner, found.kind, found.state, found.lock) == ("pve1", "pve1", "lxc", "RUNNING", "")
        assert (found.unprivileged, found.template, found.writable) == (True, False, True)
        assert found.init == lab.host.call("lxc-info", "-n", "201", "-pH").stdout.decode().strip()
        assert found.volumes == {"rootfs": "local-lvm:vm-201-disk-0"}
        assert found.storages == {"local": "dir", "local-lvm": "lvmthin"}
        assert (len(lab.calls()), lab.connections()) == (calls, connections)

    def test_snapshots_are_not_taken_for_keys(self, spare: Lab, host: Ssh) -> None:
        spare.host.call("pct", "snapshot", "202", "one", "--description", "lock: me")
        with spare.configuration(202).open("a") as file:
            file.write("\n[two]\nsnapstate: delete\nsnaptime: 1700000000\n\n[pve:pending]\nmemory: 1024\n")
        with spare.config(202, lock="backup"):
            found = proxmox.facts(host, 202)
        assert ([snapshot.name for snapshot in found.snapshots], found.lock, found.config["parent"]) == (["one"], "backup", "one")

    def test_a_freeze_that_lxc_does_not_know_of_is_seen(self, spare: Lab, host: Ssh) -> None:
        spare.start(202)
        spare.host.call("lxc-cgroup", "-n", "202", "freezer.state", "FROZEN")
        try:
            assert spare.state(202) == "RUNNING"
            assert proxmox.facts(host, 202).state == "FROZEN"
        finally:
            spare.host.call("lxc-cgroup", "-n", "202", "freezer.state", "THAWED")

    def test_without_quorum_the_configuration_cannot_be_written(self, lab: Lab, host: Ssh) -> None:
        with lab.without_quorum(202):
            assert not proxmox.facts(host, 202).writable

    def test_files_that_cannot_be_read_are_asked_of_pct(self, lab: Lab, host: Ssh) -> None:
        calls = len(lab.calls())
        found = proxmox.facts(with_etc_pve(host, "rm .vmlist"), 201)
        assert (found.state, found.unprivileged, found.owner) == ("RUNNING", True, found.node)
        assert [call["argv"][0] for call in lab.calls()[calls:]] == ["status", "config"]

    def test_login_noise_spoils_nothing(self, host: Ssh) -> None:
        noisy = Wrapped(host, "sh", "-c", 'echo "lock: backup"; "$@"; echo "lock: backup"', "sh")
        assert (proxmox.facts(noisy, 200).lock, proxmox.facts(noisy, 200).state) == ("", "RUNNING")


def with_etc_pve(host: Ssh, change: str) -> Wrapped:
    """The host, as one sees it whose /etc/pve is a copy that was changed."""
    copy = f'rm -rf /run/pve.seen && mkdir /run/pve.seen && cp -a /etc/pve/. /run/pve.seen && cd /run/pve.seen && {change}'
    return Wrapped(host, "unshare", "-m", "sh", "-c", f'{copy} && mount --bind /run/pve.seen /etc/pve; exec "$@"', "sh")


class TestAdmit:
    def test_a_container_that_runs_is_admitted(self, host: Ssh) -> None:
        assert container(host, 200).admit().state == "RUNNING"

    def test_a_stopped_one_is_refused_with_what_starts_it(self, host: Ssh) -> None:
        said, status, todo = no(container(host, 202).admit)
        assert (said, status) == ("ct202: container 202 is not running on pve1", 3)
        assert "`pct start 202`" in todo

    def test_one_that_is_nowhere_does_not_exist(self, host: Ssh) -> None:
        assert no(container(host, 999).admit)[:2] == ("ct999: container 999 does not exist on pve1", 3)

    def test_a_virtual_machine_is_no_container(self, lab: Lab, host: Ssh) -> None:
        with lab.elsewhere(202, node="pve1", kind="qemu"):
            assert no(container(host, 202).admit)[:2] == ("ct202: 202 is a virtual machine on node pve1, not a container", 3)

    def test_one_that_moved_is_named_with_its_node(self, lab: Lab, host: Ssh) -> None:
        with lab.elsewhere(202, node="pve2"):
            assert no(container(host, 202).admit)[:2] == ("ct202: container 202 is on node pve2 now, not on pve1", 3)

    def test_one_that_moved_is_followed_to_a_host_of_the_hosts_file(self, host: Ssh) -> None:
        heard = Heard()
        moved = container(with_etc_pve(host, "ln -sfn nodes/pve2 local"), 200, reach={"pve1": host}.get)
        assert moved.ready(0, heard).owner == "pve1"
        assert (moved.host, heard.events) == (host, [("moved", {"container": 200, "node": "pve1", "host": "pve1"})])

    def test_a_template_is_refused(self, lab: Lab, host: Ssh) -> None:
        with lab.config(202, template="1"):
            assert no(container(host, 202).admit)[0] == "ct202: container 202 is a template on pve1"

    def test_a_frozen_one_is_not_entered_and_the_thaw_is_named(self, spare: Lab, host: Ssh) -> None:
        spare.start(202)
        spare.freeze(202)
        calls = len(spare.calls())
        said, status, todo = no(container(host, 202).admit)
        assert (said, status) == ("ct202: container 202 is frozen on pve1, so nothing in it can answer", 3)
        assert "`lxc-unfreeze -n 202`" in todo
        assert len(spare.calls()) == calls

    def test_who_is_not_root_is_told_so(self, host: Ssh) -> None:
        nobody = Wrapped(host, "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--")
        assert no(container(nobody, 200).admit)[:2] == ("ct200: pct on pve1 works for root only", 3)

    def test_a_cluster_file_system_that_is_down_is_told(self, lab: Lab, host: Ssh) -> None:
        with lab.settings(pmxcfs=False):
            said = no(container(with_etc_pve(host, "rm .vmlist"), 200).admit)[0]
        assert said == "ct200: the cluster file system of pve1 is down, so pct does not work"

    def test_a_locked_one_may_be_looked_at(self, lab: Lab, host: Ssh) -> None:
        with lab.config(200, lock="backup"):
            assert container(host, 200).admit().lock == "backup"


class TestReady:
    @pytest.mark.parametrize("lock, work", [("backup", "a backup"), ("migrate", "a migration"), ("disk", "other work")])
    def test_a_lock_that_stays_is_busy_and_is_left_alone(self, lab: Lab, host: Ssh, lock: str, work: str) -> None:
        heard = Heard()
        with lab.config(202, lock=lock):
            said, status, todo = no(lambda: container(host, 202).ready(0.1, heard))
            assert f"lock: {lock}\n" in lab.configuration(202).read_text()
        assert (status, heard.words()) == (6, ["busy"])
        assert said.startswith(f"ct202: container 202 is locked on pve1 by {work}")
        assert "pct unlock 202" in todo

    def test_a_lock_that_goes_is_waited_for(self, lab: Lab, host: Ssh) -> None:
        heard, found = Heard(), []
        with lab.config(200, lock="backup"):
            waiting = threading.Thread(target=lambda: found.append(container(host, 200).ready(30, heard)))
            waiting.start()
            until("it waits", lambda: heard.words() == ["busy"])
        waiting.join(30)
        assert [facts.lock for facts in found] == [""]

    def test_the_lock_of_a_mount_hinders_nothing(self, lab: Lab, host: Ssh) -> None:
        with lab.config(200, lock="mounted"):
            assert container(host, 200).ready(0, Heard()).state == "RUNNING"

    @pytest.mark.parametrize("ha", [False, True])
    def test_it_is_started_where_the_target_says_so(self, spare: Lab, host: Ssh, ha: bool) -> None:
        heard = Heard()
        with spare.settings(ha=ha):
            assert container(host, 202, start=True).ready(0, heard).state == "RUNNING"
        assert (heard.words(), spare.state(202)) == (["started"], "RUNNING")

    def test_a_look_starts_nothing(self, lab: Lab, host: Ssh) -> None:
        assert "a run starts it" in no(container(host, 202, start=True).admit)[2]
        assert lab.state(202) == "STOPPED"

    def test_a_start_without_quorum_is_refused_in_pcts_meaning(self, spare: Lab, host: Ssh) -> None:
        with spare.without_quorum(202):
            said, status, _ = no(lambda: container(host, 202, start=True).ready(0, Heard()))
        assert (said, status) == ("ct202: pve1 has lost its cluster (no quorum), so nothing can be changed there", 3)


class TestStill:
    def test_a_lock_that_has_come_since_is_busy(self, lab: Lab, host: Ssh) -> None:
        ct = container(host, 200)
        before = ct.admit()
        ct.still(before, 0, Heard())
        with lab.config(200, lock="backup"), pytest.raises(BusyError):
            ct.still(before, 0.1, Heard())

    @pytest.mark.parametrize("end, said", [("stop", "was stopped"), ("restart", "was restarted"), ("move", "is on node pve2 now")])
    def test_its_end_is_told(self, spare: Lab, host: Ssh, end: str, said: str) -> None:
        spare.start(202)
        ct = container(host, 202)
        before = ct.admit()
        assert ct.gone(before) is None
        spare.stop(202)
        if end == "restart":
            spare.start(202)
        if end == "move":
            with spare.elsewhere(202):
                gone = ct.gone(before)
        else:
            gone = ct.gone(before)
        assert (str(gone), gone and gone.exit_status) == (f"ct202: container 202 {said}", 3)

    def test_a_short_freeze_is_waited_for_and_a_long_one_refused(self, spare: Lab, host: Ssh) -> None:
        spare.start(202)
        ct = container(host, 202)
        before = ct.admit()
        spare.freeze(202)
        with pytest.raises(TransportError, match="is frozen on pve1"):
            ct.still(before, 0.1, Heard())
        heard = Heard()
        waiting = threading.Thread(target=ct.still, args=(before, 30, heard))
        waiting.start()
        until("it waits", lambda: heard.words() == ["busy"])
        spare.thaw(202)
        waiting.join(30)
        assert not waiting.is_alive()


def test_a_lock_of_a_backup_that_stopped_it_is_busy_and_not_down(lab: Lab, host: Ssh) -> None:
    with lab.config(202, lock="backup"):
        assert no(lambda: container(host, 202).ready(0, Heard()))[1] == 6
