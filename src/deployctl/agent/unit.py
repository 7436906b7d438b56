"""A program in a transient service of systemd: its minder, and below it the program, are started by systemd instead of by the job.

Everything else is as without it: who it runs as, its environment, its log, how its end is kept. What the minder must know travels in
files of the run's own directory (0600) and not in the unit, whose properties everybody may read.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from typing import Any, Dict, List, Tuple

from . import environment, minder, scope
from .faults import Fault, Refused
from .starts import Start

RUNNERS = ("/usr/bin/systemd-run", "/bin/systemd-run")
OLDEST = 243  # knows OOMPolicy= and Type=exec. Source: systemd.service(5)
WITHIN = 60.0  # seconds that systemd has
SOURCE, START, TELL = ".zip", ".start", ".tell"  # endings of a run's files; they are there while a unit is being started
CODE = "import sys; sys.path.insert(0, sys.argv[1]); from %s.unit import main; main(*sys.argv[1:])"


def look() -> None:
    """Raises Refused where no unit can be made."""
    lacks = _lacks()
    if lacks:
        todo = "leave `as: systemd` out, or choose another target"
        raise Refused("no unit of systemd can be made: %s" % lacks, where="launch: as", todo=todo)


def _lacks() -> str:
    if not os.path.isdir(scope.SYSTEMD):
        return "systemd does not run here"
    if os.geteuid():
        return "only root may"
    runner = _runner()
    if runner is None:
        return "there is no systemd-run"
    try:
        done = subprocess.run([runner, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=WITHIN, check=False)
        found = re.match(rb"systemd (\d+)", done.stdout)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if found and int(found.group(1)) >= OLDEST else "systemd is older than %d" % OLDEST


def name(job: Any, which: str) -> str:
    """The unit's name; the one of a rollback is another one."""
    return re.sub(r"[^A-Za-z0-9:_.-]", "-", "deployctl-%s-%s%s" % (job.workload["name"], job.run, "" if which == "new" else "-" + which))


def spawn(job: Any, start: Start, unit: str) -> Tuple[int, Dict[str, Any]]:
    """(the program's pid; {"pid", "started"} of the minder). Raises Fault with the reason when it could not be executed."""
    base = os.path.join(job.home.runs, job.run)
    try:
        _leave(base, job, start)
        answer = os.open(base + TELL, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            _ask_systemd(unit, job, base)
            return minder.judged(minder.heard(_listen(answer)), start)
        finally:
            os.close(answer)
    except OSError as error:
        raise Fault("systemd could not be asked: %s" % error, where="systemd-run", todo="see `systemctl status` in the target") from error
    finally:
        remove(base)


def remove(base: str) -> None:
    """Removes the files of a start; they hold the environment."""
    for ending in (SOURCE, START, TELL):
        try:
            os.unlink(base + ending)
        except FileNotFoundError:
            pass


def _leave(base: str, job: Any, start: Start) -> None:
    """Lays down what the unit needs."""
    remove(base)
    wanted = {"order": minder.order(job), "start": start}
    os.mkfifo(base + TELL, 0o600)
    for ending, data in ((START, json.dumps(wanted).encode()), (SOURCE, _source())):
        handle = os.open(base + ending, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)


def _source() -> bytes:
    """The agent's own zip, as the controller sent it."""
    with open(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "rb") as stream:
        return stream.read()


def _ask_systemd(unit: str, job: Any, base: str) -> None:
    call = [_runner() or "systemd-run", "--quiet", "--collect", "--unit=" + unit, "--description=deployctl: %s" % job.workload["name"]]
    call += ["--property=Type=exec", "--property=OOMPolicy=continue", "--setenv=PATH=" + environment.PATH]
    call += [sys.executable, "-I", "-B", "-c", CODE % (__package__ or "agent"), base + SOURCE, base]
    try:
        done = subprocess.run(call, stdin=subprocess.DEVNULL, capture_output=True, timeout=WITHIN, check=False)
    except subprocess.TimeoutExpired as error:
        raise Fault("no answer within %d s" % WITHIN, where="systemd-run", todo="see `systemctl status` in the target") from error
    if done.returncode:
        words = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["status %d" % done.returncode]
        raise Fault("systemd made no unit: %s" % words[-1], where="systemd-run", todo="see `journalctl -u %s` in the target" % unit)


def _listen(answer: int) -> str:
    """What minder and program say, until none of them can say any more."""
    until, said = time.monotonic() + WITHIN, b""
    while time.monotonic() < until:
        try:
            piece = os.read(answer, 1 << 16)
        except BlockingIOError:
            piece = None
        if piece:
            said += piece
        elif piece == b"" and said:
            break
        else:
            time.sleep(0.005)
    return said.decode()


def _runner() -> Any:
    return next((path for path in RUNNERS if os.access(path, os.X_OK)), None)


def main(source: str, base: str) -> None:
    """In the unit: reads what was laid down, removes it, and becomes the minder."""
    with open(base + START) as stream:
        wanted = json.load(stream)
    tell = os.open(base + TELL, os.O_WRONLY | os.O_CLOEXEC)
    remove(base)
    fields: List[Any] = wanted["start"]
    start = Start(*fields)
    start = start._replace(user=environment.User(*start.user) if start.user is not None else None)
    log = os.open(start.log, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    for deaf_to in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
        signal.signal(deaf_to, signal.SIG_IGN)
    minder.mind(minder.Order(*wanted["order"]), start, log, tell)
