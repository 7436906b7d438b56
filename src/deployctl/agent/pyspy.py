"""The stack of a Python process, from py-spy where the target has it.

Only `dump --nonblocking`: the default mode stops the process, which can turn a wait that a signal ends into one that nothing ends.
"""

from __future__ import annotations

import os
import re
import shutil
from typing import Any, Dict, List, Optional

from . import bounded

WITHIN = 0.8  # seconds; seen: less than 0.1 in every state
PLACES = "/usr/local/bin:/usr/bin:/bin:/opt/venv/bin"
_FRAME = re.compile(r"^\s{4,}(\S.*?) \((.+?)(?::(\d+))?\)\s*$")
_THREAD = re.compile(r"^Thread (\d+|0x[0-9a-fA-F]+)")


def stack(taken: Dict[str, Any]) -> List[str]:
    """The frames of the main thread, the innermost first: `function (file.py:line)`. Empty without py-spy, and when it says nothing."""
    program = _program(taken)
    return parse(_dump(program, taken["seen"]["pid"])) if program else []


def parse(text: str) -> List[str]:
    """The frames of the thread that py-spy calls MainThread, else of the first one."""
    threads: Dict[str, List[str]] = {}
    name = ""
    for line in text.splitlines():
        if _THREAD.match(line):
            name = line
            threads[name] = []
        elif name and _FRAME.match(line):
            threads[name].append(line.strip())
    main = next((title for title in threads if "MainThread" in title), next(iter(threads), ""))
    return threads.get(main, [])


def _program(taken: Dict[str, Any]) -> Optional[str]:
    """py-spy beside the interpreter of the process, or where programs are."""
    beside = [os.path.dirname(word) for word in (taken["exe"] or "", (taken["seen"]["argv"] or [""])[0]) if word.startswith("/")]
    return shutil.which("py-spy", path=os.pathsep.join([*beside, os.environ.get("PATH", ""), PLACES]))


def _dump(program: str, pid: int) -> str:
    raw = bounded.output([program, "dump", "--nonblocking", "--pid", str(pid)], WITHIN)
    return (raw or b"").decode("utf-8", "replace")
