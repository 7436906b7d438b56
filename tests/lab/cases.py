"""A line of the pct contract as a case: what is typed on the node, and what the contract says comes of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.lab.lab import Lab

NO_QUORUM, NO_PMXCFS, OLD_PCT = ("quorum", False), ("pmxcfs", False), ("keep_env", False)


@dataclass(frozen=True)
class Case:
    """A line for the host's shell, and what the contract says of it. `out` and `err` are whole, unless they begin with `~` (a pattern).

    `given` are settings of the lab that differ for the time of the case.
    """

    contract: str
    line: str
    status: int = 0
    out: str = ""
    err: str = ""
    given: tuple[tuple[str, object], ...] = ()


def ids(case: Case) -> str:
    """The name of its test: the line of the contract."""
    return case.contract


def assert_holds(lab: Lab, case: Case, before: str = "") -> None:
    """Run the case's line on the lab's host, after `before`, and compare."""
    with lab.settings(**dict(case.given)):
        done = lab.host.call("sh", "-c", before + case.line, check=False)
    out, err = done.stdout.decode(), done.stderr.decode()
    wrong = [said for said, wanted in ((out, case.out), (err, case.err)) if not _as_wanted(said, wanted)]
    assert (done.returncode, wrong) == (case.status, []), out + err


def _as_wanted(said: str, wanted: str) -> bool:
    return bool(re.fullmatch(wanted[1:], said, re.DOTALL)) if wanted.startswith("~") else said == wanted


# What is in /tmp/t of the container that a line names, anew for each case.
INSIDE = (
    "rm -rf /tmp/t; mkdir -p /tmp/t && cd /tmp/t && printf old > old && chmod 640 old && chown 1000 old && ln old link"
    " && ln -s /tmp/t/link escape; rm -f /mnt/f"
)
# A program that runs, a small disk, one that cannot be written: as long as the module's tests run.
LASTING = (
    "mkdir -p /run/t && cp /bin/sleep /run/t/busy && (setsid /run/t/busy 600 >/dev/null 2>&1 </dev/null & echo $! > /run/t/pid)"
    " && mount -t tmpfs -o size=1m tmpfs /mnt && mount -t tmpfs -o ro tmpfs /opt"
)


def made(lab: Lab) -> Iterator[str]:
    """Something to push on the host, something to push onto in 200 and 201; the words that a line begins with."""
    outside = lab.host.call("mktemp", "-d", "/run/push.XXXXXX").stdout.decode().strip()
    lab.host.call("sh", "-ec", f"cd {outside}; echo new > a; head -c 2000000 /dev/zero > big")
    for ct in (200, 201):
        lab.exec(ct, "sh", "-c", LASTING)
    yield outside
    for ct in (200, 201):
        lab.exec(ct, "sh", "-c", "kill $(cat /run/t/pid); umount /mnt /opt; rm -rf /tmp/t /run/t", check=False)
    lab.host.call("rm", "-r", outside)


@pytest.fixture(scope="module")
def outside(lab: Lab) -> Iterator[str]:
    """The directory on the host."""
    yield from made(lab)


def fresh(outside: str, line: str) -> str:
    """What stands before a case's line: the container that it names is as new, the directory is the host's; `inside` is past pct."""
    ct = 201 if " 201 " in line else 200
    return f'inside() {{ lxc-attach -n {ct} -- "$@"; }}; inside sh -c "{INSIDE}"; cd {outside}; '
