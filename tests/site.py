"""A workspace of the controller and a trainer in a target of any kind, for tests of whole runs."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from tests.lab.host import ENVIRONMENT
from tests.lab.lab import Lab

T = TypeVar("T")
ROOT = Path(__file__).parent.parent
DEMO = ROOT / "src" / "deployctl" / "demo"

# Runs in the target: every process whose script is the one named, as JSON, with its environment.
LIST = """
import json, os, sys
found = []
for name in os.listdir("/proc"):
    try:
        argv = open("/proc/%s/cmdline" % name, "rb").read().split(b"\\0")[:-1]
        if name == str(os.getpid()) or not any(word.endswith(sys.argv[1].encode()) for word in argv[1:3]):
            continue
        status = open("/proc/%s/status" % name).read()
        if "State:\\tZ" in status or len([l for l in status.splitlines() if l.startswith("NSpid")][0].split()) != 1 + int(sys.argv[2]):
            continue
        environ = dict(e.split("=", 1) for e in open("/proc/%s/environ" % name).read().split("\\0") if "=" in e)
        found.append({"pid": int(name), "argv": [os.fsdecode(a) for a in argv], "environment": environ, "status": status,
                      "cwd": os.readlink("/proc/%s/cwd" % name)})
    except (OSError, ValueError, IndexError):
        pass
print(json.dumps(found))
"""

# Runs in the target: starts argv detached in a directory, with its log, as `setsid -f … >log 2>&1 </dev/null` would; or deaf to INT, as
# a shell's `&` makes it.
START = """
import os, signal, subprocess, sys
os.chdir(sys.argv[1])
os.environ["PYTHONUNBUFFERED"] = "1"
if sys.argv.pop(2) == "deaf":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
os.makedirs("logs", exist_ok=True)
with open("logs/train.log", "ab") as log:
    print(subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True).pid)
"""


def until(what: str, look: Callable[[], T], seconds: float = 20) -> T:
    """The first true value of `look`; fails after the deadline."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := look():
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s: {what}")


class Place:
    """Where the trainer runs, looked at past deployctl."""

    def __init__(self, name: str, call: Callable[..., subprocess.CompletedProcess[bytes]], depth: int, base: str) -> None:
        self.name, self._call, self.depth, self.base = name, call, depth, base

    def exec(self, *argv: str, input: bytes | None = None, check: bool = True) -> subprocess.CompletedProcess[bytes]:
        done = self._call(*argv, input=input, check=False)
        assert not check or done.returncode == 0, (argv, done.stdout, done.stderr)
        return done

    def python(self, code: str, *argv: str) -> str:
        return self.exec("/usr/bin/python3", "-c", code, *argv).stdout.decode()

    def write(self, path: str, text: bytes) -> None:
        self.exec("/bin/sh", "-c", 'mkdir -p "$(dirname "$0")" && cat > "$0"', path, input=text)

    def read(self, path: str) -> bytes:
        return self.exec("/bin/cat", path).stdout

    def exists(self, path: str) -> bool:
        return self.exec("/usr/bin/test", "-e", path, check=False).returncode == 0

    def listing(self, path: str) -> list[str]:
        return sorted(self.exec("/usr/bin/find", path, "-mindepth", "1").stdout.decode().splitlines())


def here() -> Place:
    def call(*argv: str, input: bytes | None = None, check: bool = True) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(argv, input=input, capture_output=True, timeout=60, check=check, env=ENVIRONMENT)

    return Place("here", call, 1, "/tmp")


def in_lab(lab: Lab, name: str) -> Place:
    if name == "pve":
        return Place(name, lambda *argv, **more: lab.host.call(*argv, **more), 1, "/tmp")
    ct = int(name.removeprefix("ct"))
    return Place(name, lambda *argv, **more: lab.exec(ct, *argv, **more), 1, "/srv")


class Started(subprocess.Popen[bytes]):
    """One that a failed test does not wait for."""

    def __exit__(self, kind: Any, *rest: Any) -> None:
        if kind is not None:
            self.kill()
        super().__exit__(kind, *rest)


class Site:
    """One workload of its own on one place. `script` has a name that no other site has, so neighbours never match."""

    def __init__(self, home: Path, place: Place, lab: Lab | None) -> None:
        self.home, self.place, self.lab = home, place, lab
        token = secrets.token_hex(4)
        self.script = f"train_{token}.py"
        self.directory = f"{place.base}/deployctl-test-{token}"
        self.state = f"{self.directory}-state"
        self.log = f"{self.directory}/logs/train.log"
        flags = {"--token-budget": "49152", "--max-seq-len": "8192", "--step-time": "0.1", "--save-time": "0.2"}
        self.command = ["python3", self.script, *(word for pair in flags.items() for word in pair)]
        self.ladder = ["INT 20s", "TERM 5s", "KILL 5s"]
        self.check: dict[str, Any] = {"alive": "1s", "log": r"step \d+", "within": "20s"}
        self.more: dict[str, Any] = {}
        self.workload: dict[str, Any] = {}
        self.target: dict[str, Any] = {}
        for directory in ("playbooks", "train", "home"):
            (home / directory).mkdir()
        (home / "train" / self.script).write_bytes((DEMO / "train" / "train_dflash_pipeline.py").read_bytes())
        (home / "train" / "throughput.py").write_bytes((DEMO / "train" / "throughput.py").read_bytes())
        self.install_old()
        self.write()

    def install_old(self) -> None:
        """The old scripts in the target, as somebody copied them there."""
        self.place.write(f"{self.directory}/{self.script}", (DEMO / "old" / "train_dflash_pipeline.py").read_bytes())
        self.place.write(f"{self.directory}/throughput.py", (DEMO / "old" / "throughput.py").read_bytes())

    def write(self, **playbook: Any) -> None:
        """hosts.yaml and playbooks/restart.yaml, as JSON, which is YAML."""
        hosts = {"hosts": {}, "targets": {self.place.name: {"local": True}}}
        if self.lab is not None:
            hosts["hosts"] = {"pve1": {"ssh": "pve1", "ssh_config": str(self.lab.ssh_config)}}
            ct = {"ct": int(self.place.name[2:])} if self.place.name.startswith("ct") else {}
            hosts["targets"] = {self.place.name: {"host": "pve1", **ct}}
        hosts["targets"][self.place.name].update({"state": self.state, **self.target})
        (self.home / "hosts.yaml").write_text(json.dumps(hosts))
        plan = {
            "description": "restart it",
            "workload": {
                "name": "train", "directory": self.directory, "command": self.command, "log": "logs/train.log", "match": self.script,
                **self.workload,
            },
            "flags": {"profile-interval": {"type": "int", "min": 0, "help": "seconds between profile reports"}},
            "steps": [
                {"push": {"from": "../train", "to": self.directory, "include": ["*.py"]}}, {"verify": "py_compile"}, {"stop": self.ladder},
                "launch", {"check": self.check},
            ],
            **self.more, **playbook,
        }  # fmt: skip
        (self.home / "playbooks" / "restart.yaml").write_text(json.dumps(plan))

    def environment(self) -> dict[str, str]:
        """What a person's shell would give; the journal goes to a home of the test. PYTHONPATH: another tree than the installed one."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TERM", "PYTHONPATH") if name in os.environ}
        return {**kept, "HOME": str(self.home / "home"), "XDG_STATE_HOME": str(self.home / "home" / "state"), "USER": "anna"}

    def start(self, *words: str, **more: Any) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-m", "deployctl", *words]
        pipe = subprocess.PIPE
        return Started(argv, cwd=self.home, env=self.environment(), stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, **more)

    def run(self, *words: str, status: int | None = 0) -> subprocess.CompletedProcess[str]:
        """Runs deployctl; asserts its exit status."""
        with self.start(*words) as process:
            out, err = process.communicate(timeout=120)
        done = subprocess.CompletedProcess(words, process.returncode, out.decode(), err.decode())
        assert status is None or done.returncode == status, f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def restart(self, *words: str, status: int | None = 0) -> subprocess.CompletedProcess[str]:
        return self.run("restart", self.place.name, *words, status=status)

    def launch_old(self, *more: str, wait: bool = True, deaf: bool = False) -> int:
        """Starts the old trainer by hand, in the target; its pid there."""
        before = len(self.steps())
        pid = int(self.place.python(START, self.directory, "deaf" if deaf else "", *self.command, *more))
        if wait:
            until("the old trainer works", lambda: len(self.steps()) > before)
        return pid

    def steps(self) -> list[str]:
        if not self.place.exists(self.log):
            return []
        return [line for line in self.place.read(self.log).decode(errors="replace").splitlines() if line.startswith("step ")]

    def trainers(self) -> list[dict[str, Any]]:
        """The processes of the trainer that are alive in the target."""
        found: list[dict[str, Any]] = json.loads(self.place.python(LIST, self.script, str(self.place.depth)))
        return found

    def events(self) -> list[dict[str, Any]]:
        """The events of the last run, as the controller's journal has them."""
        files = sorted((self.home / "home" / "state" / "deployctl" / "runs").glob("*.jsonl"))
        return [json.loads(line) for line in files[-1].read_text().splitlines()] if files else []

    def target_events(self) -> list[dict[str, Any]]:
        """The events of the last run, as the target has them."""
        runs = f"{self.state}/workloads/train/runs"
        files = [path for path in self.place.listing(runs) if path.endswith(".jsonl")] if self.place.exists(runs) else []
        return [json.loads(line) for line in self.place.read(files[-1]).decode().splitlines()] if files else []

    def staged(self) -> list[str]:
        """What lies in the places of runs beside the destination, without what is kept for going back."""
        home = f"{self.directory}/.deployctl"
        return [path for path in self.place.listing(home) if "/new/" in path or path.endswith("bundle")] if self.place.exists(home) else []

    def end(self) -> None:
        """Ends what runs and removes what was made in the target."""
        for seen in self.trainers():
            self.place.exec("/bin/sh", "-c", 'kill -CONT "$0"; kill -KILL "$0"', str(seen["pid"]), check=False)
        minder = (self.record() or {}).get("minder") or {"pid": 0}
        until("the minder has written down the end", lambda: not self.place.exists(f"/proc/{minder['pid']}"), 10)
        self.place.exec("/bin/rm", "-rf", self.directory, self.state, check=False)

    def record(self) -> dict[str, Any] | None:
        """What the target keeps of the last launch; None for none, and for one that a test has damaged."""
        try:
            return dict(json.loads(self.place.exec("/bin/cat", f"{self.state}/workloads/train/record.json", check=False).stdout))
        except ValueError:
            return None
