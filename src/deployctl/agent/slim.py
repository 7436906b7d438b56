"""What a minder runs: its source is executed after that of title.py in a Python that imports next to nothing, so it must stand alone."""

from __future__ import annotations

import os
import time


def kills(counter: str) -> int:
    """How often the kernel has killed for memory, as the cgroup's file says; 0 when it cannot be read."""
    try:
        with open(counter) as lines:
            return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)
    except (OSError, ValueError, IndexError):
        return 0


def mind(words: list[str]) -> None:
    """Waits for the child and writes down how it ended: "signal" or "status", "ended", "lasted", "oom_kills".

    words: title, pid, the file to write, a JSON object of what is known already, and where there is one the counter and its value.
    """
    title, pid, path, known = words[:4]
    globals()["show_as"](title)
    begun = time.monotonic()
    _, status = os.waitpid(int(pid), 0)
    how = '"signal": %d' % os.WTERMSIG(status) if os.WIFSIGNALED(status) else '"status": %d' % os.WEXITSTATUS(status)
    more = ', %s, "ended": %.3f, "lasted": %.3f' % (how, time.time(), time.monotonic() - begun)
    if len(words) > 4:
        more += ', "oom_kills": %d' % max(0, kills(words[4]) - int(words[5]))
    try:
        handle = os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.write(handle, (known.rstrip("}") + more + "}").encode())
        os.fsync(handle)
        os.close(handle)
        os.replace(path + ".new", path)
    except OSError:
        pass
