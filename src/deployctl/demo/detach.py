"""Starts a program as an orphan: a session of its own, every signal at its default, no terminal. Prints its pid.

Run as a script, so that nothing of the caller is inherited; stdin has JSON: {"argv", "directory", "environment", "log"}.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys


def main() -> None:
    """Starts it and leaves."""
    wanted = json.load(sys.stdin)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    with open(wanted["log"], "ab") as log:  # noqa: PTH123 - a path as text
        started = subprocess.Popen(
            wanted["argv"], cwd=wanted["directory"], env=wanted["environment"], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
    print(started.pid)


if __name__ == "__main__":
    main()
