"""The transport into a container, against the lab's pct and LXC containers."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from deployctl.errors import BusyError, DeployError, TransportError
from deployctl.transports.base import exec
from deployctl.transports.pct import Pct
from deployctl.transports.ssh import Ssh
from tests.lab.lab import Lab
from tests.transports.contract import Contract, sh
from tests.transports.sshd import Host

PYTHON = ["/usr/bin/env", "PATH=/sbin:/bin:/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin", "python3", "-I", "-c", "print(1)"]


@pytest.fixture
def host(lab: Lab) -> Iterator[Ssh]:
    ssh = Ssh(Host("pve1", "pve1", lab.ssh_config))
    yield ssh
    ssh.close()


@pytest.fixture(params=[200, 201])
def transport(host: Ssh, request: pytest.FixtureRequest) -> Pct:
    """A privileged container, then an unprivileged one."""
    return Pct(host, request.param, f"ct{request.param}")


@pytest.mark.serial
@pytest.mark.lab
class TestContract(Contract):
    pass


def explained(host: Ssh, vmid: int, argv: list[str]) -> DeployError:
    """What becomes of pct's own words when this program does not start."""
    ct = Pct(host, vmid, f"ct{vmid}")
    done = exec(ct, argv)
    assert done.status
    return ct.explain(done.status, done.stderr, done.stdout.decode())


@pytest.mark.serial
@pytest.mark.lab
class TestWords:
    def test_a_stopped_container_is_named_with_what_starts_it(self, host: Ssh) -> None:
        error = explained(host, 202, PYTHON)
        assert (str(error), error.exit_status) == ("ct202: container 202 is not running on pve1", 3)
        assert error.todo == "start it with `pct start 202`, or choose another target"

    def test_a_container_that_is_nowhere_is_named(self, host: Ssh) -> None:
        assert str(explained(host, 999, PYTHON)) == "ct999: container 999 does not exist on pve1"

    def test_a_container_without_a_python_is_named(self, host: Ssh) -> None:
        error = explained(host, 203, PYTHON)
        assert error.what == "no python3 in container 203 (looked in /sbin:/bin:/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin)"
        assert "`python:` key" in error.todo

    def test_a_program_that_lxc_cannot_start_is_named(self, host: Ssh) -> None:
        assert explained(host, 200, ["/no/such"]).what == "no /no/such in container 200"

    def test_a_container_that_stops_meanwhile_is_told(self, host: Ssh) -> None:
        assert "was killed" in explained(host, 200, sh("kill -9 $$")).what

    def test_a_host_without_pct_is_no_proxmox_node(self, server: object) -> None:
        ssh = Ssh(server.host)  # type: ignore[attr-defined]
        if exec(ssh, ["test", "-e", "/usr/sbin/pct"]).status == 0:
            pytest.skip("this machine has a pct")
        assert "so it is no Proxmox node" in explained(ssh, 200, PYTHON).what
        ssh.close()


WORDS = [
    ("container '200' not running!", TransportError, "container 200 is not running on pve1"),
    ("lxc-attach: 200: ../src/lxc/attach.c: 1: Failed to get init pid", TransportError, "container 200 is not running on pve1"),
    ("Configuration file 'nodes/b/lxc/200.conf' does not exist", TransportError, "container 200 does not exist on pve1"),
    ("can't lock file '/run/lock/lxc/pve-config-200.lock' - got timeout", BusyError, "container 200 is locked on pve1"),
    ("CT is locked (backup)", BusyError, "container 200 is locked on pve1"),
    (
        "ipcc_send_rec[1] failed: Connection refused\nUnable to load access control list: Connection refused",
        TransportError,
        "the cluster file system of pve1 is down, so pct does not work",
    ),
    (
        "ipcc_send_rec[1] failed: Unknown error -1\nUnable to load access control list: Unknown error -1",
        TransportError,
        "pct on pve1 works for root only",
    ),
    ("/usr/bin/env: '/usr/sbin/pct': No such file or directory", TransportError, "there is no pct on pve1, so it is no Proxmox node"),
]


@pytest.mark.parametrize("stderr, kind, what", WORDS)
def test_pcts_words_mean_what_they_mean(stderr: str, kind: type[DeployError], what: str) -> None:
    error = Pct(Ssh(Host("pve1", "pve1", None)), 200, "ct200").explain(255, f"some noise\n{stderr}\n")
    assert (type(error), error.what, error.where) == (kind, what, "ct200")


@pytest.mark.serial
@pytest.mark.lab
class TestPut:
    @pytest.fixture
    def ct(self, host: Ssh) -> Pct:
        return Pct(host, 200, "ct200")

    def test_the_copy_on_the_host_is_gone_afterwards(self, ct: Pct, host: Ssh, directory: str, source: Path) -> None:
        ct.put(source, f"{directory}/new")
        assert exec(host, ["ls", host.private_directory()]).stdout == b""

    def test_the_copy_on_the_host_is_gone_after_a_failure(self, ct: Pct, host: Ssh, source: Path) -> None:
        with pytest.raises(TransportError):
            ct.put(source, "/no/dir/new")
        assert exec(host, ["ls", host.private_directory()]).stdout == b""

    def test_it_costs_one_pct_push_and_no_other_connection(self, lab: Lab, ct: Pct, directory: str, source: Path) -> None:
        calls, connections = len(lab.calls()), lab.connections()
        ct.put(source, f"{directory}/new")
        made = [call["argv"] for call in lab.calls()[calls:]]
        assert ([argv[0] for argv in made], made[0][-2:], lab.connections()) == (["push"], ["--perms", "600"], connections)

    def test_words_with_exit_status_0_are_a_failure(self, lab: Lab, ct: Pct, directory: str, source: Path) -> None:
        with lab.settings(push_fault="exit0-message"), pytest.raises(TransportError, match=r"ct200: pct push to .* failed: failed to"):
            ct.put(source, f"{directory}/new")

    def test_a_stopped_container_is_told(self, host: Ssh, source: Path) -> None:
        with pytest.raises(TransportError, match="ct202: container 202 is not running on pve1"):
            Pct(host, 202, "ct202").put(source, "/root/new")

    def test_a_lock_that_is_given_back_is_waited_for(self, lab: Lab, ct: Pct, directory: str, source: Path) -> None:
        with lab.flock(200):
            pushing = threading.Thread(target=ct.put, args=(source, f"{directory}/new"))
            pushing.start()
            pushing.join(3)
            waited = pushing.is_alive()
        pushing.join(15)
        assert (waited, exec(ct, ["cat", f"{directory}/new"]).stdout) == (True, source.read_bytes())

    def test_a_lock_that_is_kept_is_busy(self, lab: Lab, ct: Pct, directory: str, source: Path) -> None:
        with lab.flock(200), lab.settings(lock_wait=0.5), pytest.raises(BusyError, match="200 is locked on pve1") as caught:
            ct.put(source, f"{directory}/new")
        assert caught.value.exit_status == 6

    def test_login_noise_on_stderr_is_no_failure(self, lab: Lab, ct: Pct, host: Ssh, directory: str, source: Path) -> None:
        home = exec(host, sh("echo $HOME")).stdout.decode().strip()
        exec(host, sh(f"cp -p {home}/.bashrc {home}/.bashrc.kept; echo 'echo noise; echo noise >&2' > {home}/.bashrc"))
        try:
            noisy = exec(host, ["true"])
            ct.put(source, f"{directory}/new")
        finally:
            exec(host, sh(f"rm -f {home}/.bashrc; mv {home}/.bashrc.kept {home}/.bashrc"))
        assert (noisy.stderr, exec(ct, ["cat", f"{directory}/new"]).stdout) == ("noise\n", source.read_bytes())

    @pytest.fixture
    def transport(self, ct: Pct) -> Pct:
        return ct


@pytest.mark.serial
@pytest.mark.lab
def test_a_program_in_a_container_outlives_the_connection(lab: Lab, host: Ssh) -> None:
    mark = f"/tmp/outlived-{time.monotonic_ns()}"
    channel = Pct(host, 200, "ct200").open(sh(f"setsid sh -c 'sleep 1; touch {mark}' <&- >&- 2>&- & echo"))
    assert channel.receive(20) == b"\n"
    channel.close()
    host.close()
    deadline = time.monotonic() + 10
    while lab.exec(200, "test", "-e", mark, check=False).returncode and time.monotonic() < deadline:
        time.sleep(0.1)
    assert lab.exec(200, "rm", mark).returncode == 0


@pytest.mark.serial
@pytest.mark.lab
@pytest.mark.parametrize("alias, what", [("unknown-key", "is unknown"), ("wrong-key", "has changed"), ("unreachable", "cannot be reached")])
def test_the_labs_other_hosts_are_refused(lab: Lab, alias: str, what: str) -> None:
    ssh = Ssh(Host("pve1", alias, lab.ssh_config))
    with pytest.raises(TransportError, match=what):
        Pct(ssh, 200, "ct200").open(["true"])
    ssh.close()
