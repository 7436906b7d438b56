"""adopt: what a running process was started with, as far as it may leave the target, for a playbook or for a start with other flags.

What /proc says of a command line is not always one that can be started again: a rank, a forked worker, a title. Such a one is refused.
"""

from __future__ import annotations

import os
import pwd
import re
from typing import Any, Dict, List, Mapping, Optional

from . import capture, environment, launchers, match, procfs, program, tree
from .faults import Refused

CONTEXT = ("PATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "CONDA_PREFIX", "XDG_CACHE_HOME")  # variables whose values are told
TELLING = ("CUDA_", "HF_", "PYTHON", "OMP_", "MKL_", "NCCL_", "TORCH_", "TRANSFORMERS_", "TOKENIZERS_")  # … and beginnings of names
SECRET = re.compile(r"TOKEN|KEY|SECRET|PASS|CRED|AUTH", re.IGNORECASE)
OF_A_SHELL = (  # names that a login brings with it, which a clean environment has or nobody needs
    "_", "PWD", "OLDPWD", "SHLVL", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "COLORTERM", "MAIL", "HOSTNAME", "LS_COLORS",
    "LESSOPEN", "LESSCLOSE", "DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "PYTHONUNBUFFERED",
)  # fmt: skip
SESSION = ("SSH_", "TMUX", "STY", "XDG_SESSION", "XDG_RUNTIME", "INVOCATION_ID", "JOURNAL_STREAM", "NOTIFY_SOCKET", "DEPLOYCTL_", "LC_")


def adopt(session: Any, request: Dict[str, Any]) -> Dict[str, Any]:
    """What `of` says of the process that `match` finds. request: workload {"name", "match"}. Raises Refused."""
    workload = match.known_by(request["workload"])
    try:
        top = tree.find(workload, None).top
    except Refused as fault:
        for seen in fault.facts.get("processes", []):
            _no_rank(seen, procfs.environment(seen["pid"]) or {})
        raise
    if top is None:
        raise Refused("no process is found by it", where="match: %s" % match.shown(workload["match"]), todo="see `ps -ef` in the target")
    return dict(of(top, capture.capture(top["pid"])), process=top)


def inherit(session: Any) -> Optional[Dict[str, Any]]:
    """For a workload with `inherit`: what `of` says of the running process, which the session's workload becomes; else None.

    Raises Refused when nothing runs, and for what cannot be started again by itself.
    """
    if not session.workload.get("inherit"):
        return None
    if session.before is None:
        todo = "start it by hand, or write its command there"
        raise Refused("nothing runs whose command line could be taken", where="workload: command", todo=todo)
    found = of(session.before, session.capture or capture.capture(session.before["pid"]))
    session.workload = dict(session.workload, command=found["argv"], directory=found["directory"], user=found["user"])
    return found


def of(seen: Mapping[str, Any], was: Mapping[str, Any]) -> Dict[str, Any]:
    """{"argv", "directory", "user", "program", "prefix", "log", "environment", "names", "notes"} of a process, its capture being `was`.

    program is where argv[0] led; user is null for the agent's own; log is null where the output is no file; environment holds the
    variables whose values may be told, names those of the others. Raises Refused for what cannot be started again by itself.
    """
    _no_rank(seen, was["environment"])
    _no_worker(seen, was)
    found = program.running(was["argv"], was["environment"], was["directory"], was["exe"])
    told = {name: text for name, text in was["environment"].items() if _may_be_told(name, text)}
    if told.get("PATH") in (None, environment.PATH) or found.prefix is None:
        told.pop("PATH", None)  # the clean one will do
    known = (*told, *OF_A_SHELL, "PATH")
    others = [name for name in was["environment"] if name not in known and not name.startswith(SESSION)]
    return {
        "argv": was["argv"], "directory": was["directory"], "user": _user(was["uid"]), "program": found.path, "prefix": found.prefix,
        "log": was["stdout"], "environment": told, "names": sorted(others), "notes": _notes(seen, was),
    }  # fmt: skip


def _may_be_told(name: str, text: str) -> bool:
    if SECRET.search(name) or "@" in text or name in OF_A_SHELL:
        return False
    return name in CONTEXT or name.startswith(TELLING)


def _no_rank(seen: Mapping[str, Any], surroundings: Mapping[str, str]) -> None:
    """Raises Refused for a process that a launcher gave a rank: by itself it would wait for the others for ever."""
    if not any(name in surroundings for name in launchers.RANKS):
        return
    glance = procfs.glance(seen["pid"])
    parent = procfs.look(glance.ppid) if glance is not None else None
    started = "pid %d: %s" % (parent["pid"], " ".join(parent["argv"])) if parent is not None else "a launcher that is gone"
    raise Refused(
        "process %d is a rank, started by %s" % (seen["pid"], started), where="match",
        todo="give the launcher's name, for example `--match torchrun`",
    )  # fmt: skip


def _no_worker(seen: Mapping[str, Any], was: Mapping[str, Any]) -> None:
    """Raises Refused for a command line that started nothing, or nothing by itself."""
    argv: List[str] = was["argv"]
    text = argv[argv.index("-c") + 1] if "-c" in argv[:-1] else ""
    if seen["comm"] == "pt_data_worker" or text.startswith("from multiprocessing."):
        what, todo = "is a worker that another process started", "let `match` find the one that started it, pid %d" % seen["ppid"]
    elif len(argv) == 1 and " " in argv[0] and not os.path.exists(os.path.join(was["directory"], argv[0])):
        what, todo = "has written over its command line: '%s'" % argv[0][:80], "write its command by hand, from the script that started it"
    else:
        return
    raise Refused("process %d %s" % (seen["pid"], what), where="match", todo=todo)


def _user(uid: int) -> Optional[str]:
    """The user's name; None for the agent's own. Raises Refused for one without a name."""
    if uid == os.geteuid():
        return None
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError as error:
        raise Refused("its user %d has no name here" % uid, where="match", todo="make one (useradd), or start it by hand") from error


def _notes(seen: Mapping[str, Any], was: Mapping[str, Any]) -> List[str]:
    """Words for what a new start will have otherwise: "deaf", "terminal", "pipe", "truncates", "umask", "nice", "replaced", "sockets"."""
    _, fields = procfs.stat_of("/proc/%d/stat" % was["pid"])  # Source: proc_pid_stat(5), field 7 tty_nr
    facts = {
        "deaf": any(name in seen["ignored"] for name in ("INT", "TERM", "QUIT")),
        "terminal": int(fields[4]) != 0,
        "pipe": was["stdout"] is None,
        "truncates": was["stdout"] is not None and not was["appends"]["stdout"],
        "umask": was["umask"] != 0o022,
        "nice": was["nice"] != 0,
        "replaced": was["exe"].endswith(program.DELETED),
        "sockets": _inherited(was["pid"]),
    }
    return [word for word, is_so in facts.items() if is_so]


def _inherited(pid: int) -> bool:
    """Whether a service manager handed it sockets, which no new start has."""
    return "LISTEN_FDS" in (procfs.environment(pid) or {})
