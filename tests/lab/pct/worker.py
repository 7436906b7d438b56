"""What pct does under the container's lock, in a forked worker: how its words and its end come back (contract 2, "Where errors go")."""

import fcntl
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from .machine import Die

LOCK_DIRECTORY = "/run/lock/lxc"
ENDINGS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


class Failed(Exception):
    """The worker's error: the one line that pct says on stderr."""


def lock(vmid: int, patience: float) -> None:
    """Take the container's lock, and keep it as long as this process or its worker lives (contract 1, point 10)."""
    path = f"{LOCK_DIRECTORY}/pve-config-{vmid}.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    end, waited = time.monotonic() + patience, False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if not waited:
                sys.stderr.write("trying to acquire lock...")
                sys.stderr.flush()
            waited = True
            if time.monotonic() > end:
                raise Die(f"\ncan't lock file '{path}' - got timeout", 4) from None
            time.sleep(0.05)
    if waited:
        sys.stderr.write(" OK\n")


def work(task: Callable[[], None], failure: int) -> int:
    """Run `task` in a forked worker; its last error comes on our stderr as one line, and `failure` is the exit status then.

    SIGTERM to us kills the worker; SIGKILL leaves it alone.
    """
    reader, writer = os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)  # until the handler knows the worker
    worker = os.fork()
    if worker == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDINGS)
        os.setsid()
        os.close(reader)
        os.dup2(1, 2)  # what it prints comes on stdout, its stderr included
        be_worker(task, writer)
    os.close(writer)

    def interrupted(*_: object) -> None:
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)
        os.waitpid(worker, 0)
        os.write(2, b"received interrupt\n")
        os._exit(failure)

    for number in ENDINGS:
        signal.signal(number, interrupted)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDINGS)
    text = b""
    while block := os.read(reader, 65536):
        text += block
    os.waitpid(worker, 0)
    if text:
        os.write(2, text + b"\n")
    return failure if text else 0


def be_worker(task: Callable[[], None], writer: int) -> NoReturn:
    """Do the task, write its error as one line into the pipe `writer`, and end."""
    try:
        task()
    except BaseException as error:  # nothing may get out of here into the parent's code
        text = str(error) if isinstance(error, (Failed, Die)) else f"the lab's pct broke: {error!r}"
        os.write(writer, text.replace("\n", " ").encode("utf-8", "surrogateescape"))
    finally:
        sys.stdout.flush()
        os._exit(0)
