"""Bystanders that look like the trainer: the script's name as an argument, the same shell, the same directory. None may get a signal."""

from __future__ import annotations

import json
import signal
from dataclasses import dataclass

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
    decoys = []
    for name, inner in pids.items():
        notes = f"{home}/{name}" if name in recorders else None
        decoys.append(Decoy(name, ground.seen_inside(inner), notes))
        if notes is not None:
            ground.until(f"decoy {name} listens", ground.path(notes).exists)
    return decoys


def disturbed(ground: Ground, decoys: list[Decoy], may_be_dead: bool) -> list[str]:
    """What was done to them."""
    wrongs = []
    for decoy in decoys:
        if decoy.notes is not None and (noted := ground.path(decoy.notes).read_text().split()):
            wrongs.append(f"decoy '{decoy.name}' got {', '.join(noted)}")
        if not may_be_dead and not decoy.sight.alive:
            wrongs.append(f"decoy '{decoy.name}' is dead")
    return wrongs


def end(decoys: list[Decoy]) -> None:
    """Ends them."""
    for decoy in decoys:
        decoy.sight.send(signal.SIGKILL)
