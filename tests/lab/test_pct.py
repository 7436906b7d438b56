"""The pct stand-in against the pct contract: each case names the line of the contract that it holds."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from tests.lab.cases import NO_PMXCFS, NO_QUORUM, OLD_PCT, Case, assert_holds, fresh, ids, outside
from tests.lab.lab import DEFAULT_SETTINGS, Lab

__all__ = ["outside"]
pytestmark = [pytest.mark.lab, pytest.mark.serial]

EXEC_USAGE = "pct exec <vmid> [<extra-args>] [OPTIONS]\n"
PUSH_USAGE = "pct push <vmid> <file> <destination> [OPTIONS]\n"
STATUS_USAGE = "pct status <vmid> [OPTIONS]\n"
BAD_VMID = "400 Parameter verification failed.\nvmid: "
MODE = "; inside stat -c %a /tmp/t/x"


EXEC = (
    Case("3: CT unknown on this node: exec", "pct exec 999 -- true", 2,
         err="Configuration file 'nodes/pve1/lxc/999.conf' does not exist\n"),
    Case("3: CT stopped: exec", "pct exec 202 -- true", 255, err="container '202' not running!\n"),
    Case("3: exec without a command", "pct exec 200", 255, err="~missing command at .*/pct.pm line [0-9]+.\n"),
    Case("3: exec: not found", "pct exec 200 -- nosuchcmd", 127,
         err='~lxc-attach: 200: .*No such file or directory - Failed to exec "nosuchcmd"\n'),
    Case("3: exec: not executable", "pct exec 200 -- /etc/passwd", 126, err='~lxc-attach: 200: .*Failed to exec "/etc/passwd"\n'),
    Case("3: exec: killed by signal n", "pct exec 200 -- sh -c 'kill -9 $$'", 137),
    Case("10: exit 3", "pct exec 200 -- sh -c 'exit 3'", 3),
    Case("10: ls -la without --", "pct exec 200 ls -la /etc", 2, err="Unknown option: la\n400 unable to parse option\n" + EXEC_USAGE),
    Case("10: argv is a vector", "pct exec 200 -- printf '<%s>' 'a b' '$HOME' '*' ''", out="<a b><$HOME><*><>"),
    Case("4: later -- are passed on", "pct exec 200 -- echo -- -x", out="-- -x\n"),
    Case("4: options until the first --", "pct exec 200 --keep-env=0 -- sh -c 'echo $HOME'", out="\n"),
    Case("1.5: no UTF-8 locale", "LC_ALL=C pct exec 200 -- printf %s 'hé'", out="h\ufffd\ufffd"),
    Case("1.5: LANG unset", "LANG= pct exec 200 -- printf %s 'hé'", out="h\ufffd\ufffd"),
    Case("1.5: UTF-8 locale", "LC_ALL=C.UTF-8 pct exec 200 -- printf %s 'hé'", out="hé"),
    Case("1.5: invalid UTF-8", "LC_ALL=C.UTF-8 pct exec 200 -- printf %s \"$(printf 'h\\351')\"", out="h\ufffd"),
    Case("1.6: PATH inside", "pct exec 200 -- sh -c 'echo $PATH'", out="/sbin:/bin:/usr/sbin:/usr/bin\n"),
    Case("4: environment kept", "X=y pct exec 200 -- sh -c 'echo $X $container $TERM'", out="y lxc linux\n"),
    Case("4: a C locale stays as it was", "env -i /usr/sbin/pct exec 200 -- sh -c 'echo $LC_CTYPE$LANG'", out="\n"),
    Case("4: SSL_CERT_FILE deleted", "SSL_CERT_FILE=x pct exec 200 -- sh -c 'echo $SSL_CERT_FILE'", out="\n"),
    Case(
        "4: --keep-env 0",
        "pct exec 200 --keep-env 0 -- env | sort",
        out="PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nTERM=linux\ncontainer=lxc\n",
    ),
    Case("4: cwd that the CT has", "cd /tmp && pct exec 200 -- pwd", out="/tmp\n"),
    Case("4: cwd that the CT has not", "cd /etc/pve && pct exec 200 -- pwd", out="/\n"),
    Case("4: cwd that only the host has", "cd /run/deployctl-lab && pct exec 200 -- pwd", out="/\n"),
    Case("4: an open descriptor leaks in", "pct exec 200 -- readlink /proc/self/fd/7 7</etc/hostname", out="/etc/hostname\n"),
    Case("4: no terminal, no pty", "pct exec 200 -- sh -c 'test -t 0 || test -t 1 || echo none' </dev/null", out="none\n"),
    Case("4: umask is inherited", "umask 027; pct exec 200 -- sh -c umask", out="0027\n"),
    Case("4: supplementary groups are dropped", "pct exec 201 -- sh -c 'id -G'", out="0\n"),
    Case("3: a directory is not executable", "pct exec 200 -- /etc", 126, err='~lxc-attach: 200: .*Failed to exec "/etc"\n'),
    Case("3: an argument longer than 128 KiB", "pct exec 200 -- echo $(head -c 140000 /dev/zero | tr '\\0' a)", 126,
         err="~.*Argument list too long\n"),
    Case("1.3: TERM to lxc-attach leaves what runs inside", "pct exec 200 -- sh -c 'echo $$ > /run/left; exec sleep 60' & "
         "until lxc-attach -n 200 -- test -s /run/left; do :; done; kill $!; wait $!; "
         "lxc-attach -n 200 -- sh -c 'kill $(cat /run/left) && rm /run/left'", err="~(Terminated\n)?"),
    Case("1.13: a semicolon that is not quoted runs on the host", "sh -c 'pct exec 200 -- hostname; hostname'", out="ct200\npve1\n"),
    Case("12: an older pct knows no --keep-env", "pct exec 200 --keep-env=0 -- true", 2,
         err="Unknown option: keep-env\n400 unable to parse option\npct exec <vmid> [<extra-args>]\n", given=(OLD_PCT,)),
    Case("12: an older pct keeps the environment", "X=y pct exec 200 -- sh -c 'echo $X'", out="y\n", given=(OLD_PCT,)),
    Case("3: no quorum: exec works", "pct exec 200 -- echo yes", out="yes\n", given=(NO_QUORUM,)),
    Case("3: pmxcfs not running: exec", "pct exec 200 -- true", 111, given=(NO_PMXCFS,),
         err="~(ipcc_send_rec\\[[123]\\] failed: Connection refused\n){3}Unable to load access control list: Connection refused\n"),
    Case("4: stdin is passed through", "printf 'a\\nb' | pct exec 200 -- cat", out="a\nb"),
    Case("4: ppid=pgid=sid=0", "setsid -w pct exec 200 -- sh -c 'cut -d\" \" -f4-6 /proc/$$/stat'", out="0 0 0\n"),
    Case("4: uid 0 in an unprivileged CT", "pct exec 201 -- sh -c 'id -u; stat -c %u /usr/bin/env /root'", out="0\n0\n0\n"),
)  # fmt: skip
WORDS = (
    Case("2: vmid is no integer", "pct status abc", 2, err=f"{BAD_VMID}type check ('integer') failed - got 'abc'\n{STATUS_USAGE}"),
    Case("2: vmid is too small", "pct status 99", 2,
         err=f"{BAD_VMID}invalid format - value does not look like a valid VM ID\n{STATUS_USAGE}"),
    Case("2: not enough arguments", "pct push 200 /tmp/a", 2, err="400 not enough arguments\n" + PUSH_USAGE),
    Case("2: too many arguments", "pct status 200 201", 2, err="400 too many arguments\n" + STATUS_USAGE),
    Case("2: vmid has no leading zero", "pct status 0200", 2,
         err=f"{BAD_VMID}invalid format - value does not look like a valid VM ID\n{STATUS_USAGE}"),
    Case("2: -opt value", "pct status 202 -verbose 0", out="status: stopped\n"),
    Case("2: --opt=value before the vmid", "pct status --verbose=no 202", out="status: stopped\n"),
    Case("2: an option without its value", "pct config 200 --snapshot", 2, err="~Option snapshot requires an argument\n400 unable.*"),
    Case("2: unknown command", "pct nonsense", 255, err="~ERROR: unknown command 'pct nonsense'\n.*"),
    Case("2: two commands begin so", "pct sta 200", 255, err="~ERROR: unknown command 'pct sta'\n.*"),
    Case("2: not root", "setpriv --reuid 65534 --clear-groups /usr/sbin/pct list", 255,
         err="~(ipcc_send_rec\\[[123]\\] failed: Unknown error -1\n){3}Unable to load access control list: Unknown error -1\n"),
    Case("2: a bare boolean swallows a word", "pct exec --keep-env 200 -- true", 2, err="~400 unable to parse boolean option\n.*"),
    Case("2: unique prefixes", "pct stat 200", out="status: running\n"),
    Case("2: pct alone", "pct", 255, err="~ERROR: no command specified\n.*"),
    Case("6: status of a stopped CT", "pct status 202", out="status: stopped\n"),
    Case("3: CT unknown: status", "pct status 999", 2, err="Configuration file 'nodes/pve1/lxc/999.conf' does not exist\n"),
    Case("6: list", "pct list | head -4", out="VMID       Status     Lock         Name                \n"
         "200        running                 ct200               \n"
         "201        running                 ct201               \n"
         "202        stopped                 ct202               \n"),
    Case("6: config", "pct config 201 | grep -E 'hostname|unpriv|digest'", out="hostname: ct201\nunprivileged: 1\n"),
    Case("6: config --snapshot of none", "pct config 200 --snapshot no", 255, err="snapshot 'no' does not exist\n"),
    Case("6: status --verbose", "pct status 202 --verbose | cut -d: -f1 | xargs",
         out="cpu cpus disk diskread diskwrite maxdisk maxmem maxswap mem name netin netout status swap type uptime vmid\n"),
    Case("6: status --verbose of a running CT tells its pid", "pct status 200 --verbose | grep -c '^pid: [0-9]'", out="1\n"),
    Case("3: no quorum: list and status work", "pct list | wc -l; pct status 200", out="~[5-9]\nstatus: running\n", given=(NO_QUORUM,)),
    Case("3: pmxcfs not running: list", "pct list", 111, err="~.*Connection refused\n", given=(NO_PMXCFS,)),
    Case("8: .vmlist", "grep -c '\"200\": {\"node\": \"pve1\", \"type\": \"lxc\"' /etc/pve/.vmlist", out="1\n"),
    Case("9: lxc-info", "lxc-info -n 200 -sH; lxc-info -n 202 -pH", out="RUNNING\n"),
    Case("8: .vmlist is for root and its group", "stat -c %a /etc/pve/.vmlist", out="440\n"),
    Case("9: lxc-info of none", "lxc-info -n 999 -sH", 1, out="~(999 doesn't exist\n)?", err="~(.*999 doesn't exist\n)?"),
    Case("the lab's own: a command that it lacks", "pct rollback 200 x", 255, err="~the lab's pct has no 'rollback'.*"),
)  # fmt: skip
PUSH = (
    Case("3: CT stopped: push", "pct push 202 a /tmp/t/x", 255, err="can only push files to a running CT\n"),
    Case("3: CT unknown: push", "pct push 999 a /tmp/t/x", 255, err="can only push files to a running CT\n"),
    Case("10: missing source", "pct push 200 nosuch /tmp/t/x", err="failed to open nosuch for reading\n"),
    Case("10: missing directory", "pct push 200 a /no/dir/x", err="failed to create file: /no/dir/x: No such file or directory\n"),
    Case("10: target is a directory", "pct push 200 a /root", err="failed to create file: /root: Is a directory\n"),
    Case("10: source is a directory", "pct push 200 /tmp /tmp/t/x && inside wc -c /tmp/t/x", out="0 /tmp/t/x\n"),
    Case("10: text file busy", "pct push 200 a /run/t/busy", err="failed to create file: /run/t/busy: Text file busy\n"),
    Case("5: unknown user", "pct push 200 a /tmp/t/x --user nobodyhere; inside test -e /tmp/t/x", 1,
         err="failed to get uid for: nobodyhere\n"),
    Case("5: unknown group", "pct push 200 a /tmp/t/x --group nogroup-here", err="failed to get gid for: nogroup-here\n"),
    Case("5: a name of the CT", "pct push 200 a /tmp/t/x --user trainer; inside stat -c '%u %g %a' /tmp/t/x", out="1000 0 644\n"),
    Case("5: id outside the map", "pct push 201 a /tmp/t/x --user 70000; inside wc -c /tmp/t/x",
         out="0 /tmp/t/x\n", err="failed to change file owner: Invalid argument\n"),
    Case("5: invalid mode", "pct push 200 a /tmp/t/x --perms u=rwx; inside test -e /tmp/t/x", 1, err="invalid mode: '0u=rwx'\n"),
    Case("5: --perms 600", "pct push 200 a /tmp/t/x --perms 600" + MODE, out="600\n"),
    Case("5: --perms 4755", "pct push 200 a /tmp/t/x --perms 4755" + MODE, out="4755\n"),
    Case("5: --perms 0x1ed", "pct push 200 a /tmp/t/x --perms 0x1ed" + MODE, out="755\n"),
    Case("5: --perms ''", "pct push 200 a /tmp/t/x --perms ''" + MODE, out="0\n"),
    Case("5: mode of a new file is 0666 & ~umask", "umask 077; pct push 200 a /tmp/t/x; inside stat -c '%a %u' /tmp/t/x",
         out="600 0\n"),
    Case("5: an existing file keeps mode and owner",
         "pct push 200 a /tmp/t/old; inside sh -c 'stat -c \"%a %u\" /tmp/t/old; cat /tmp/t/link'",
         out="640 1000\nnew\n"),
    Case("5: a symlink cannot escape", "pct push 200 a /tmp/t/escape; inside cat /tmp/t/link", out="new\n"),
    Case("5: relative means from /", "pct push 200 a tmp/t/x; inside cat /tmp/t/x", out="new\n"),
    Case("5: source may be /dev/stdin", "printf in | pct push 200 /dev/stdin /tmp/t/x; inside cat /tmp/t/x", out="in"),
    Case("5: unprivileged: owner is its root", "pct push 201 a /tmp/t/x; inside stat -c '%u %g' /tmp/t/x", out="0 0\n"),
    Case("1.2: disk full", "pct push 200 big /mnt/f; inside sh -c 'test $(stat -c %s /mnt/f) -lt 2000000 && echo short'",
         out="short\n"),
    Case("5: read-only file system", "pct push 200 a /opt/x", err="failed to create file: /opt/x: Read-only file system\n"),
    Case("5: unprivileged: a directory of the host's root",
         "mkdir -m 700 /proc/$(lxc-info -n 201 -pH)/root/tmp/t/no; pct push 201 a /tmp/t/no/x;"
         " rmdir /proc/$(lxc-info -n 201 -pH)/root/tmp/t/no", err="failed to create file: /tmp/t/no/x: Permission denied\n"),
    Case("5: a numeric id that no account has", "pct push 200 a /tmp/t/x --user 4711 --group 12; inside stat -c '%u %g' /tmp/t/x",
         out="4711 12\n"),
    Case("5: user:group in one", "pct push 200 a /tmp/t/x --user root:root", err="failed to get uid for: root:root\n"),
    Case("5: the source's mode and time are not kept", "chmod 755 a; touch -d 2001-01-01 a; pct push 200 a /tmp/t/x; chmod 644 a;"
         " inside sh -c 'stat -c %a /tmp/t/x; find /tmp/t/x -newermt 2002-01-01'", out="644\n/tmp/t/x\n"),
    Case("5: ~ is not expanded", "pct push 200 a '~/x'", err="failed to create file: ~/x: No such file or directory\n"),
    Case("5: unprivileged: shifted on the host", "pct push 201 a /tmp/t/x; stat -c %u /proc/$(lxc-info -n 201 -pH)/root/tmp/t/x",
         out="100000\n"),
    Case("5: pull", "pct pull 200 /tmp/t/old /dev/stdout | cat", out="old"),
    Case("5: pull of what is missing leaves an empty file", "pct pull 200 /root/nosuch p; wc -c < p; rm p", out="0\n",
         err="failed to open /root/nosuch: No such file or directory\n"),
    Case("3: CT stopped: pull", "pct pull 202 /etc/hostname p", 255, err="~can only pull files from a running VM at .* line [0-9]+.\n"),
    Case("3: no quorum: push works", "pct push 200 a /tmp/t/x; inside cat /tmp/t/x", out="new\n", given=(NO_QUORUM,)),
    Case("3: pmxcfs not running: push", "pct push 200 a /tmp/t/x", 111, err="~.*Connection refused\n", given=(NO_PMXCFS,)),
    Case("1.5: names too", "LC_ALL=C pct push 200 a /tmp/t/é; inside ls /tmp/t | grep -c \"$(printf '\\357\\277\\275')\"",
         out="1\n"),
)  # fmt: skip


@pytest.mark.parametrize("case", EXEC + WORDS, ids=ids)
def test_pct_answers_as_the_contract_says(lab: Lab, case: Case) -> None:
    assert_holds(lab, case)


@pytest.mark.parametrize("case", PUSH, ids=ids)
def test_push_does_what_the_contract_says(lab: Lab, outside: str, case: Case) -> None:
    assert_holds(lab, case, fresh(outside, case.line))


@pytest.fixture
def places(lab: Lab, outside: str) -> str:
    """The host's directory, and the container 200 as new."""
    lab.host.call("sh", "-c", fresh(outside, ""))
    return outside


def test_a_push_waits_for_the_lock(lab: Lab, places: str) -> None:
    """Contract 10: second push while another runs: trying to acquire lock... / OK."""
    with lab.flock(200):
        waiting = subprocess.Popen(lab.host.inside("pct", "push", "200", f"{places}/a", "/tmp/t/x"), stderr=subprocess.PIPE)
        assert waiting.stderr and waiting.stderr.read(25) == b"trying to acquire lock..."
    assert waiting.communicate(timeout=10)[1] == b" OK\n" and waiting.returncode == 0


def test_a_push_gives_up_after_its_wait(lab: Lab, places: str) -> None:
    """Contract 3: flock busy > 10 s; here for less."""
    begun = time.monotonic()
    with lab.flock(200), lab.settings(lock_wait=0.5):
        done = lab.host.call("pct", "push", "200", f"{places}/a", "/tmp/t/x", check=False)
    assert done.returncode == 4 and time.monotonic() - begun >= 0.5 and DEFAULT_SETTINGS["lock_wait"] == 10
    assert b"can't lock file '/run/lock/lxc/pve-config-200.lock' - got timeout\n" in done.stderr


def test_sigkill_to_a_push_lets_the_copy_go_on_under_the_lock(lab: Lab, places: str) -> None:
    """Contract 5: interrupted."""
    script = (
        f"cd {places}; mkfifo g; exec 3<>g; printf part >&3; pct push 200 g /tmp/t/x 3>&- & "
        "while ! lxc-attach -n 200 -- test -s /tmp/t/x; do :; done; kill -KILL $!; "
        "flock -n /run/lock/lxc/pve-config-200.lock true || echo locked; printf more >g; exec 3>&-; "
        "flock -w 20 /run/lock/lxc/pve-config-200.lock true && rm g && lxc-attach -n 200 -- cat /tmp/t/x"
    )
    done = lab.host.call("sh", "-c", script, check=False, timeout=40)
    assert done.stdout == b"locked\npartmore"


def test_sigterm_to_a_push_leaves_a_partial_file_and_status_0(lab: Lab, places: str) -> None:
    """Contract 5: interrupted."""
    script = (
        f"cd {places}; mkfifo f; exec 3<>f; printf part >&3; pct push 200 f /tmp/t/x & "
        "while ! lxc-attach -n 200 -- test -s /tmp/t/x; do :; done; kill $!; wait $!"
    )
    done = lab.host.call("sh", "-c", script, check=False, timeout=20)
    assert (done.returncode, done.stderr) == (0, b"received interrupt\n")
    assert lab.exec(200, "cat", "/tmp/t/x").stdout == b"part"


@pytest.mark.parametrize(
    ("fault", "text", "left"),
    [("exit0-message", b"failed to create file: /tmp/t/old: Permission denied\n", b"old"), ("exit0-silent-truncate", b"", b"ne")],
)
def test_a_push_fault_fails_with_status_0(lab: Lab, places: str, fault: str, text: bytes, left: bytes) -> None:
    with lab.settings(push_fault=fault):
        done = lab.host.call("pct", "push", "200", f"{places}/a", "/tmp/t/old", check=False)
    assert (done.returncode, done.stderr) == (0, text)
    assert lab.exec(200, "cat", "/tmp/t/old").stdout == left


def test_a_lock_in_the_configuration_shows_and_hinders_nothing(lab: Lab) -> None:
    """Contract 3: config locked: exec, list, status, config."""
    with lab.config(200, lock="backup"):
        assert b"200        running    backup       ct200" in lab.host.call("pct", "list").stdout
        assert lab.host.call("pct", "exec", "200", "--", "echo", "yes").stdout == b"yes\n"


def test_a_push_works_while_a_backup_holds_the_configuration(lab: Lab, places: str) -> None:
    """Contract 1.10: push also ignores `lock:`."""
    with lab.config(200, lock="backup"):
        done = lab.host.call("pct", "push", "200", f"{places}/a", "/tmp/t/x", check=False)
    assert (done.returncode, done.stderr, lab.exec(200, "cat", "/tmp/t/x").stdout) == (0, b"", b"new\n")


def test_a_container_of_another_node_does_not_exist_here(lab: Lab) -> None:
    """Contract 8: elsewhere it is the "does not exist" message."""
    with lab.elsewhere(202):
        done = lab.host.call("pct", "status", "202", check=False)
        listed = lab.host.call("cat", "/etc/pve/.vmlist").stdout
    assert (done.returncode, done.stderr) == (2, b"Configuration file 'nodes/pve1/lxc/202.conf' does not exist\n")
    assert b'"202": {"node": "pve2"' in listed


def test_the_labs_settings_are_those_that_pct_knows(lab: Lab) -> None:
    settings = (Path(__file__).parent / "pct/machine.py").read_text()
    assert [name for name in DEFAULT_SETTINGS if f"    {name}: " not in settings] == []


def test_a_delay_holds_each_call_up(lab: Lab) -> None:
    begun = time.monotonic()
    with lab.settings(delay=0.4):
        lab.host.call("pct", "status", "200")
    assert time.monotonic() - begun >= 0.4


def test_each_call_is_noted_before_it_acts(lab: Lab) -> None:
    before = len(lab.calls())
    racing = [subprocess.Popen(lab.host.inside("pct", "exec", "200", "--", "true", "x" * 9000)) for _ in range(8)]
    assert [one.wait(30) for one in racing] == [0] * 8
    assert [call["argv"] for call in lab.calls()[before:]] == [["exec", "200", "--", "true", "x" * 9000]] * 8
