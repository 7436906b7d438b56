"""start, stop, shutdown, reboot, snapshots and locks of the pct stand-in, each with the line of the contract that it holds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab import processes
from tests.lab.cases import NO_PMXCFS, NO_QUORUM, Case, assert_holds, ids
from tests.lab.lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.serial]

UNKNOWN = "Configuration file 'nodes/pve1/lxc/999.conf' does not exist\n"
STATE = "; lxc-info -n 202 -sH"
DISPLAY = "; grep -c '^lock' /etc/pve/lxc/202.conf"
# 202 is stopped before each line, and its configuration is as `lab up` made it.
STOPPED = (
    Case("3: CT unknown: start", "pct start 999", 255, err=UNKNOWN),
    Case("3: CT unknown: stop", "pct stop 999", 255, err="CT 999 not running\n"),
    Case("3: CT unknown: shutdown", "pct shutdown 999", 255, err="CT 999 not running\n"),
    Case("3: CT stopped: stop", "pct stop 202", 255, err="CT 202 not running\n"),
    Case("3: CT stopped: reboot", "pct reboot 202", 255, err="VM 202 not running\n"),
    Case("3: no quorum: start", "pct start 202", 255, err="cluster not ready - no quorum?\n", given=(NO_QUORUM,)),
    Case("3: pmxcfs not running: start", "pct start 202", 111, err="~.*Connection refused\n", given=(NO_PMXCFS,)),
    Case("7: start returns when init was started, and exec works at once", "pct start 202 && pct exec 202 -- hostname" + STATE,
         out="ct202\nRUNNING\n"),
    Case("1.12: HA: start only asks", "pct start 202" + STATE + "; until lxc-info -n 202 -sH | grep -q RUN; do :; done; "
         "flock -w 20 /run/lock/lxc/pve-config-202.lock true", out="Requesting HA start for CT 202\nSTOPPED\n", given=(("ha", True),)),
)  # fmt: skip
# 202 runs before each line.
RUNNING = (
    Case("3: CT running: start", "pct start 202", 255, err="CT 202 already running\n"),
    Case("7: stop kills", "pct stop 202" + STATE, out="STOPPED\n"),
    Case("7: shutdown", "pct shutdown 202" + STATE, out="STOPPED\n"),
    Case("7: shutdown that is ignored", "init=$(lxc-info -n 202 -pH); kill -STOP $init; pct shutdown 202 --timeout 1; "
         "status=$?; kill -CONT $init; exit $status", 255,
         out="command 'lxc-stop -n 202 --nokill --timeout 1' failed: exit code 1\n", err="container did not stop\n"),
    Case("2: --timeout takes a number", "pct shutdown 202 --timeout soon", 2, err="~400 Parameter verification failed.\n.*"),
    Case("7: reboot", "lxc-attach -n 202 -- touch /run/mark; pct reboot 202 && pct exec 202 -- test -e /run/mark", 1),
    Case("3: exec: CT stopped meanwhile", "pct exec 202 -- sh -c 'echo; exec sleep 60' >/run/out & until test -s /run/out; do :; done; "
         "rm /run/out; pct stop 202; wait $!", 137),
    Case("3: locked: stop", "pct stop 202", 255, err="CT is locked (backup)\n", given=(("lock", "backup"),)),
    Case("3: locked: shutdown", "pct shutdown 202", 255, err="CT is locked (migrate)\n", given=(("lock", "migrate"),)),
    Case("3: locked: snapshot", "pct snapshot 202 one", 255, err="CT is locked (backup)\n", given=(("lock", "backup"),)),
    Case("7: reboot ignores lock:", "pct reboot 202" + STATE + DISPLAY, out="RUNNING\n1\n", given=(("lock", "backup"),)),
)  # fmt: skip
SNAPSHOTS = (
    Case("7: snapshot, listsnapshot", "pct snapshot 202 one --description 'by hand' && pct snapshot 202 two && pct listsnapshot 202",
         out="~`-> one +[0-9-]+ [0-9:]+ +by hand\n `-> two +[0-9-]+ [0-9:]+ +no-description\n  `-> current +You are here!\n"),
    Case("7: a name that is used", "pct snapshot 202 one; pct snapshot 202 one", 255, err="snapshot name 'one' already used\n"),
    Case("7: a name that is none", "pct snapshot 202 1one", 2, err="~400 Parameter verification failed.\n.*"),
    Case("7: a name of one letter", "pct snapshot 202 o", 2, err="~400 Parameter verification failed.\n.*"),
    Case("7: a name that is too long", f"pct snapshot 202 {'n' * 41}", 2, err="~400 Parameter verification failed.\n.*"),
    Case("7: a name that is reserved", "pct snapshot 202 vzdump", 2, err="~400 Parameter verification failed.\n.*"),
    Case("7: plain directory storage", "pct snapshot 203 one", 255, err="snapshot feature is not available\n"),
    Case("7: a bind mount point", "sed -i '1i mp0: /srv/data,mp=/data' /etc/pve/lxc/202.conf; pct snapshot 202 one", 255,
         err="snapshot feature is not available\n"),
    Case("6: config --snapshot", "pct snapshot 202 one; pct config 202 --snapshot one | grep -c snaptime; pct config 202 | grep parent",
         out="1\nparent: one\n"),
    Case("6: a description is percent-encoded", "pct snapshot 202 one --description 'a:b'; pct config 202 --snapshot one | grep desc",
         out="description: a%3Ab%0A\n"),
    Case("7: delsnapshot", "pct snapshot 202 one; pct snapshot 202 two; pct delsnapshot 202 one && pct listsnapshot 202",
         out="~`-> two .*\n `-> current .*\n"),
    Case("7: delsnapshot of none", "pct delsnapshot 202 one", 255, err="snapshot 'one' does not exist\n"),
    Case("3: no quorum: snapshot", "pct snapshot 202 one", 255, err="~unable to open file '/etc/pve/nodes/pve1/lxc/202.conf.tmp.[0-9]+' - "
         "Permission denied\n", given=(NO_QUORUM,)),
    Case("3: CT unknown: listsnapshot", "pct listsnapshot 999", 2, err=UNKNOWN),
    Case("6: unlock", "sed -i '1i lock: backup' /etc/pve/lxc/202.conf; pct unlock 202" + DISPLAY, 1, out="0\n"),
    Case("6: unlock without a lock", "pct unlock 202", 255, err="no lock found trying to remove any lock\n"),
    Case("3: no quorum: unlock", "sed -i '1i lock: backup' /etc/pve/lxc/202.conf; pct unlock 202", 2, err="~unable to open file .*denied\n",
         given=(NO_QUORUM,)),
    Case("6: a lock that says mounted shows in list", "sed -i '1i lock: mounted' /etc/pve/lxc/202.conf; pct list | grep ^202 | cut -c1-34",
         out="202        stopped    mounted     \n"),
)  # fmt: skip


@pytest.fixture
def stopped(lab: Lab) -> Iterator[Lab]:
    """The container 202 stopped, before and after, with its configuration as it was."""
    file = lab.configuration(202)
    before = file.read_text()
    yield lab
    file.write_text(before)
    file.chmod(0o640)
    if lab.state(202) != "STOPPED":
        lab.stop(202)


@pytest.mark.parametrize("case", STOPPED + SNAPSHOTS, ids=ids)
def test_a_stopped_container(stopped: Lab, case: Case) -> None:
    assert_holds(stopped, case)


@pytest.mark.parametrize("case", RUNNING, ids=ids)
def test_a_running_container(stopped: Lab, case: Case) -> None:
    stopped.start(202)
    given = dict(case.given)
    with stopped.config(202, **{key: str(value) for key, value in given.items()}):
        assert_holds(stopped, Case(case.contract, case.line, case.status, case.out, case.err))


def test_a_snapshot_of_a_running_container_freezes_it_for_a_moment_only(stopped: Lab) -> None:
    """Contract 7: CT may run: it is frozen, synced, and thawed."""
    stopped.start(202)
    stopped.host.call("pct", "snapshot", "202", "one")
    assert stopped.state(202) == "RUNNING"
    assert "lock" not in stopped.configuration(202).read_text()


def test_a_busy_lock_hinders_a_start(stopped: Lab) -> None:
    """Contract 3: flock busy > 10 s."""
    with stopped.flock(202), stopped.settings(lock_wait=0.1):
        done = stopped.host.call("pct", "start", "202", check=False)
    assert (done.returncode, b"got timeout" in done.stderr, stopped.state(202)) == (4, True, "STOPPED")


def test_a_frozen_container_shows_as_running_and_holds_an_exec(stopped: Lab) -> None:
    """Contract 4: a frozen CT makes exec hang; `pct list` shows running."""
    stopped.start(202)
    stopped.freeze(202)
    try:
        assert stopped.host.call("pct", "status", "202").stdout == b"status: running\n"
        done = stopped.host.call("sh", "-c", "timeout -s KILL 0.5 pct exec 202 -- true >/dev/null 2>&1", check=False)
        assert done.returncode == 137
    finally:
        stopped.thaw(202)
    processes.wait_for("container 202 answers", lambda: stopped.exec(202, "true", check=False).returncode == 0, 10, "look at its log")
