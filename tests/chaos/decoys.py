"""Bystanders that look like the trainer: the script's name as an argument, the same shell, the same directory; and strangers that have
a pid which deployctl has on record. None may get a signal."""

from __future__ import annotations

import json
import secrets
import signal
from collections.abc import Mapping
from dataclasses import dataclass

from tests.chaos import claims, invariants
from tests.chaos.eyes import Sight
from tests.chaos.ground import Ground

# Writes down every signal that can be caught.
DECOY = """
import signal, sys
def note(number, frame):
    with open(sys.argv[1], "a") as file:
        file.write(signal.Signals(number).name + "\\n")
for number in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, note)
open(sys.argv[1], "a").close()
while True:
    signal.pause()
"""

# As a shell would: one session and group for the old trainer (if it is to be started) and its sibling; the others stand alone.
START = """
import json, os, subprocess, sys
made = json.loads(sys.argv[1])
os.setsid()
os.environ["PYTHONUNBUFFERED"] = "1"
nothing = subprocess.DEVNULL
pids = {}
for name, argv, alone in made["decoys"]:
    pids[name] = subprocess.Popen(argv, cwd=made["directory"], stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=alone).pid
if made["command"]:
    os.makedirs(made["directory"] + "/logs", exist_ok=True)
    with open(made["directory"] + "/logs/train.log", "ab") as log:
        subprocess.Popen(made["command"], cwd=made["directory"], stdin=nothing, stdout=log, stderr=log)
print(json.dumps(pids))
"""

# Starts each program under the pid that is asked for, as far as no process has it. Source: clone(2), CLONE_ARGS_SIZE_VER1 with set_tid.
GIVE = """
import ctypes, json, os, signal, struct, sys, time
CLONE3, SECONDS = 435, 1.0
def dead(pid):
    try:
        return open("/proc/%d/stat" % pid).read().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True
def fork_as(pid):
    wanted = (ctypes.c_int * 1)(pid)
    words = [0, 0, 0, 0, int(signal.SIGCHLD), 0, 0, 0, ctypes.addressof(wanted), 1]
    arguments = ctypes.create_string_buffer(struct.pack("<10Q", *words))
    return ctypes.CDLL(None).syscall(CLONE3, arguments, 80)
given = []
for pid, argv in json.loads(sys.argv[1]):
    until, child = time.monotonic() + SECONDS, -1
    while child < 0 and dead(pid) and time.monotonic() < until:  # a zombie keeps its pid until its parent has looked
        child = fork_as(pid)
        if child == 0:
            os.setsid()
            nothing = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(nothing, number)
            os.execvp(argv[0], argv)
        time.sleep(0.005)
    if child > 0:
        given.append(pid)
print(json.dumps(given))
"""


@dataclass(frozen=True)
class Decoy:
    """One bystander; `notes` is its file of signals in the target, None for a program that keeps none."""

    name: str
    sight: Sight
    notes: str | None


def start(ground: Ground, with_trainer: bool) -> list[Decoy]:
    """Starts all of them, and the old trainer from the same shell when it is wanted."""
    home, script = f"{ground.directory}-decoys", ground.script
    ground.place.write(f"{home}/decoy.py", DECOY.encode())
    recorders = {
        "argument": ["python3", f"{home}/decoy.py", f"{home}/argument", script],
        "code": ["python3", "-c", DECOY, f"{home}/code", script],
        "sibling": ["python3", f"{home}/decoy.py", f"{home}/sibling"],
    }
    argvs = [(name, argv, name != "sibling") for name, argv in recorders.items()] + [("tail", ["tail", "-f", script], True)]
    made = {"decoys": argvs, "directory": ground.directory, "command": ground.command if with_trainer else None}
    pids: dict[str, int] = json.loads(ground.place.python(START, json.dumps(made)))
    return [_listening(ground, name, inner, f"{home}/{name}" if name in recorders else None) for name, inner in pids.items()]


def give(ground: Ground, pids: Mapping[int, str]) -> list[Decoy]:
    """Strangers under those pids of the target that no living process has; each pid comes with whose it was."""
    home, script = f"{ground.directory}-decoys", ground.script
    ground.place.write(f"{home}/decoy.py", DECOY.encode())
    notes = {pid: f"{home}/pid-{pid}-{secrets.token_hex(2)}" for pid in pids}
    argvs = [(pid, ["python3", f"{home}/decoy.py", notes[pid], script]) for pid in pids]
    given: list[int] = json.loads(ground.place.python(GIVE, json.dumps(argvs)))
    return [_listening(ground, pids[pid], pid, notes[pid]) for pid in given]


def _listening(ground: Ground, name: str, inner: int, notes: str | None) -> Decoy:
    if notes is not None:
        ground.until(f"decoy {name} listens", ground.path(notes).exists)
    return Decoy(name, ground.seen_inside(inner), notes)


def on_record(ground: Ground, run: str, old: Sight | None) -> dict[int, str]:
    """The pids by which deployctl knows processes, and whose they are: the run's jobs, what was launched last, what ran before."""
    jobs = {int(event["job_pid"]): "the job's pid" for event in claims.events_of(ground, run) if event["what"] == "cutover"}
    record = invariants.read_json(ground.path(f"{ground.state}/workloads/train/record.json")) or {}
    recorded = {int(record["pid"]): "the recorded pid"} if "pid" in record else {}
    return {**jobs, **recorded, **({old.inner: "the old pid"} if old is not None else {})}


def disturbed(ground: Ground, decoys: list[Decoy], may_be_dead: bool) -> list[str]:
    """What was done to them."""
    wrongs = []
    for decoy in decoys:
        if decoy.notes is not None and (noted := ground.path(decoy.notes).read_text().split()):
            wrongs.append(f"decoy '{decoy.name}' ({decoy.sight.inner}) got {', '.join(noted)}")
        if not may_be_dead and not decoy.sight.alive:
            wrongs.append(f"decoy '{decoy.name}' ({decoy.sight.inner}) is dead")
    return wrongs


def end(decoys: list[Decoy]) -> None:
    """Ends them."""
    for decoy in decoys:
        decoy.sight.send(signal.SIGKILL)
