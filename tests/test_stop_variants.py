"""Programs that are hard to stop, started by hand in a container beside a neighbour of the same shell: judged by what is left of them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.agent.test_launchers import AGENT
from tests.site import Site, until

pytestmark = pytest.mark.lab

# Each says READY, and on an interrupt writes `whole` by way of `whole.tmp` within SAVE seconds.
HEAD = """import os, signal, subprocess, sys, threading, time
def save(name='whole', seconds=SAVE):
    with open(name + '.tmp', 'w') as out:
        end = time.monotonic() + seconds
        while time.monotonic() < end: out.write('x' * 99999); out.flush(); time.sleep(0.1)
    os.rename(name + '.tmp', name)
"""
LOOP = """
try:
    print('READY', flush=True)
    while True: time.sleep(0.1)
except KeyboardInterrupt: save()
"""
WORKERS = """
for _ in range(4):
    if not os.fork():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        while os.getppid() != 1: time.sleep(0.1)
        os._exit(0)
"""
LEAVES = """
if not os.fork():
    if os.fork(): os._exit(0)
    os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(600)'])
os.wait()
"""
THREAD = "\nthreading.Thread(target=lambda: time.sleep(600)).start()\n"
NATIVE = """
import hashlib
try:
    print('READY', flush=True)
    while True: hashlib.pbkdf2_hmac('sha256', b'x', b'y', 2_000_000)
except KeyboardInterrupt: save()
"""


@dataclass(frozen=True)
class Variant:
    """A program, how it is started, its ladder, and which checkpoints must be whole."""

    text: str
    stop: Any = field(default_factory=lambda: ["INT 20s", "TERM 5s", "KILL 5s"])
    save: str = "0.5"
    line: str = "{python} {script}"
    whole: int = 1
    skipped: str = ""


VARIANTS = {
    "ignores-int": Variant(LOOP, line="{python} {script} &\nwait", whole=0, skipped="signal-ignored"),
    "threads-keep-it": Variant(THREAD + LOOP, [{"signal": "INT", "wait": "20s", "again": True}, "KILL 5s"]),
    "long-checkpoint": Variant(LOOP, ["INT 1s", "TERM 5s", "KILL 5s"], save="5"),
    "native-call": Variant(NATIVE),
    "shell-wrapper": Variant(LOOP, line="{python} {script}\nexit 0"),
    "forked-workers": Variant(WORKERS + LOOP),
    "double-forked": Variant(LEAVES + LOOP, [*["INT 2s", "TERM 5s"], "KILL 5s"]),
    "launcher-with-a-clock": Variant(AGENT, {"ladder": ["INT 20s", "KILL 5s"], "to": "ranks"}, save="3", whole=2),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_nothing_is_cut_left_or_touched_that_is_another(ct_site: Site, name: str) -> None:
    variant, place = VARIANTS[name], ct_site.place
    text = variant.text if variant.text is AGENT else HEAD.replace("SAVE", variant.save) + variant.text
    place.write(f"{ct_site.directory}/{ct_site.script}", text.encode())
    place.write(f"{ct_site.directory}/beside.py", b"import time\ntime.sleep(600)\n")
    mark = f"VARIANT={ct_site.script}"
    program = variant.line.format(python="python3 -u", script=ct_site.script)
    first = "setsid -w env " if name == "double-forked" else ""  # a worker that leaves its parent is known by the session of its parent
    place.write(f"{ct_site.directory}/run.sh", f"python3 beside.py & echo $! >beside\n{first}{program}\n".encode())
    environment = ["SAVE=" + variant.save, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT=1", mark]
    started = f"cd {ct_site.directory} && setsid -f env {' '.join(environment)} sh run.sh >out 2>&1 </dev/null"
    place.exec("/bin/sh", "-c", started)
    until("it is ready", lambda: place.exists(f"{ct_site.directory}/out") and b"READY" in place.read(f"{ct_site.directory}/out"))
    ct_site.write(steps=[{"stop": variant.stop}])
    beside = place.read(f"{ct_site.directory}/beside").decode().strip()
    try:
        done = ct_site.run("stop", "ct200", "--json")
        events = [json.loads(line) for line in done.stdout.splitlines()]
        assert place.exec("/bin/kill", "-0", beside, check=False).returncode == 0, "the neighbour is gone"
        assert variant.skipped in [event.get("verdict", "") for event in events if event["what"] == "rung-skipped"] or not variant.skipped
        files = place.listing(ct_site.directory)
        assert not [path for path in files if path.endswith(".tmp")], "half a checkpoint"
        if variant.text is AGENT:
            assert [place.read(f"{ct_site.directory}/{ct_site.script}.{rank}") for rank in range(2)] == [b"2 saved "] * 2
        else:
            assert len([path for path in files if path.endswith("/whole")]) == variant.whole
        left = place.exec("/bin/sh", "-c", f"grep -lz '^{mark}' /proc/[0-9]*/environ 2>/dev/null; true").stdout.decode().split()
        alive = [path.split("/")[2] for path in left if place.exec("/bin/cat", f"{path[:-8]}/comm", check=False).stdout.strip() != b"sh"]
        assert alive == [beside]
    finally:
        pids = f"$(grep -lz '^{mark}' /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3)"
        place.exec("/bin/sh", "-c", f"for p in {pids}; do kill -9 $p; done; true")
