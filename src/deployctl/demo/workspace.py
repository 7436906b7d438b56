"""The workspace of the demo: hosts.yaml, the restart playbook, new scripts in train/, a run of the old ones in target/dflash.

It makes, starts and removes; it does not restart, that is for deployctl itself. The run holds a lock on a file of its own, and
the kernel says who holds it: no pid is kept that could be someone else's by now.
"""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import select
import shutil
import signal
import struct
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from deployctl.errors import DeployError
from deployctl.values import show_duration

HERE = Path(__file__).resolve().parent
SCRIPT = "train_dflash_pipeline.py"
FLAGS = ("--token-budget", "49152", "--max-seq-len", "8192")
CLEAN_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"  # what a launched program gets
GRACE = 20.0  # seconds that an INT gets before the KILL
_FLOCK = "hhqqi4x"  # struct flock of 64-bit Linux: type, whence, start, length, pid

HOSTS = """\
# Where workloads run. To reach container 200 of a real Proxmox host instead of this machine, take the # away below,
# write your host's name, and remove the ct200 that is `local`. In playbooks/restart.yaml, `to`, `directory`, `match` and the
# script in `command` are then paths inside the container.
#
# hosts:
#   pve1: {ssh: root@pve1.example.org}
# targets:
#   ct200: {host: pve1, ct: 200}
targets:
  ct200: {local: true, state: %s}
"""

PLAYBOOK = """\
description: Push the training scripts and restart the run with new flags
workload:
  name: train
  directory: %(target)s
  command: [%(python)s, %(script)s, %(flags)s]
  log: logs/train.log
  match: %(script)s
flags:
  profile-interval: {type: int, min: 0, help: seconds between profile reports (0 turns them off)}
steps:
  - push: {from: ../train, to: %(target)s, include: ["*.py"]}
  - verify: py_compile
  - stop: [INT 20s, TERM 5s, KILL 5s]
  - launch
  - check: {alive: 2s, log: 'step \\d+', within: 30s}
"""


@dataclass(frozen=True)
class Workspace:
    """The places of a workspace; `directory` is absolute."""

    directory: Path

    @property
    def hosts(self) -> Path:
        """The hosts file."""
        return self.directory / "hosts.yaml"

    @property
    def playbooks(self) -> Path:
        """The directory of the playbooks."""
        return self.directory / "playbooks"

    @property
    def source(self) -> Path:
        """The new scripts, as a team would edit them."""
        return self.directory / "train"

    @property
    def target(self) -> Path:
        """The directory of the run, as it would be in a container."""
        return self.directory / "target" / "dflash"

    @property
    def log(self) -> Path:
        """The log of the run."""
        return self.target / "logs" / "train.log"

    @property
    def command(self) -> tuple[str, ...]:
        """The command line of the run, as the playbook has it; the script by its whole path, so that it matches no other run."""
        return (_python(), str(self.target / SCRIPT), *FLAGS)


def make(directory: Path) -> Workspace:
    """Makes the workspace; the directory is new or empty. Raises DeployError."""
    workspace = Workspace(directory.absolute())
    where = str(workspace.directory)
    if any(not character.isprintable() for character in where) or "${" in where:
        raise DeployError("a playbook cannot hold this path", where=ascii(where), todo="choose a plain name")
    try:
        if workspace.directory.exists() and any(workspace.directory.iterdir()):
            raise DeployError("the directory is not empty", where=where, todo="choose a new one, or empty it")
        workspace.log.parent.mkdir(parents=True)
        workspace.playbooks.mkdir()
        _copy(HERE / "train", workspace.source)
        _copy(HERE / "old", workspace.target)
        workspace.hosts.write_text(HOSTS % _quoted(str(workspace.directory / "state")))
        (workspace.playbooks / "restart.yaml").write_text(_playbook(workspace))
    except OSError as error:
        raise DeployError(f"cannot make the workspace: {error.strerror}", where=where, todo="choose another directory") from error
    return workspace


def start_old(workspace: Workspace, within: float = 30.0) -> int:
    """Starts the old scripts, detached, and waits for the first step in the log; the pid. Raises DeployError."""
    pid = _detach(workspace)
    deadline = time.monotonic() + within
    while not _steps(workspace.log):
        if time.monotonic() > deadline or _ended(pid):
            raise DeployError(
                "the old trainer shows no step: " + (_last_line(workspace.log) or "its log is empty"),
                where=str(workspace.log), todo="look into the log; the command was " + " ".join(workspace.command),
            )  # fmt: skip
        time.sleep(0.05)
    return pid


def running(workspace: Workspace) -> int | None:
    """The pid of the trainer that works in the workspace, old or new, or None."""
    try:
        with (workspace.target / "checkpoints" / "in-use").open("rb") as file:
            question = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            kind, *_, pid = struct.unpack(_FLOCK, fcntl.fcntl(file, fcntl.F_GETLK, question))
    except FileNotFoundError:
        return None
    return None if kind == fcntl.F_UNLCK else int(pid)


def stop(workspace: Workspace, grace: float = GRACE) -> None:
    """Ends the trainer that works in the workspace (INT, after `grace` seconds KILL) and removes the workspace.

    Raises DeployError when it does not end; then the workspace is still there.
    """
    deadline = time.monotonic() + grace
    while (pid := running(workspace)) is not None:
        _end(workspace, pid, max(0.0, deadline - time.monotonic()))
    _remove(workspace.directory)


def _remove(directory: Path) -> None:
    """Removes it, also while somebody writes a last word there: the minder of the trainer that has just ended."""
    for _ in range(20):
        try:
            shutil.rmtree(directory)
            return
        except OSError:
            time.sleep(0.1)
    shutil.rmtree(directory)


def _end(workspace: Workspace, pid: int, grace: float) -> None:
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        if running(workspace) != pid:  # asked again: now the pidfd is known to be the one that holds the lock
            return
        for number, wait in ((signal.SIGINT, grace), (signal.SIGKILL, 5.0)):
            try:
                signal.pidfd_send_signal(process, number)
            except ProcessLookupError:
                return
            if select.select([process], [], [], wait)[0]:
                return
        raise DeployError(
            f"the trainer (pid {pid}) is still there {show_duration(grace + 5)} after INT and KILL",
            where=str(workspace.directory), todo="look with `deployctl status ct200` in that directory",
        )  # fmt: skip
    finally:
        os.close(process)


def _detach(workspace: Workspace) -> int:
    user = pwd.getpwuid(os.geteuid())
    environment = {
        "PATH": CLEAN_PATH, "HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name, "SHELL": user.pw_shell or "/bin/sh",
        "LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1",
    }  # fmt: skip
    wanted = {"argv": workspace.command, "directory": str(workspace.target), "environment": environment, "log": str(workspace.log)}
    starter = subprocess.run(
        [sys.executable, "-I", str(HERE / "detach.py")], input=json.dumps(wanted), capture_output=True, text=True, check=False
    )
    if starter.returncode:
        raise DeployError(
            "the old trainer does not start: " + (starter.stderr.strip().splitlines() or ["no reason given"])[-1],
            where=str(workspace.target), todo="the command was " + " ".join(workspace.command),
        )  # fmt: skip
    return int(starter.stdout)


def _python() -> str:
    """`python3` where the path of a launched program has one, else the interpreter that runs this."""
    return "python3" if shutil.which("python3", path=CLEAN_PATH) else os.path.realpath(sys.executable)


def _playbook(workspace: Workspace) -> str:
    python, script, *flags = workspace.command
    return PLAYBOOK % {
        "target": _quoted(str(workspace.target)),
        "python": _quoted(python),
        "script": _quoted(script),
        "flags": ", ".join(flags),
    }


def _quoted(text: str) -> str:
    """A YAML text: JSON's quotes are YAML's double quotes; a plain path needs none."""
    plain = all(character.isascii() and (character.isalnum() or character in "/._-") for character in text)
    return text if plain else json.dumps(text, ensure_ascii=False)


def _copy(source: Path, destination: Path) -> None:
    destination.mkdir(exist_ok=True)
    for file in sorted(source.glob("*.py")):
        shutil.copyfile(file, destination / file.name)


def _ended(pid: int) -> bool:
    """Has it ended? A zombie has: whoever adopts orphans here may be slow to reap them."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([process], [], [], 0)[0])
    finally:
        os.close(process)


def _steps(log: Path) -> bool:
    return any(line.startswith("step ") for line in log.read_text(errors="replace").splitlines())


def _last_line(log: Path) -> str:
    return (log.read_text(errors="replace").splitlines() or [""])[-1]
