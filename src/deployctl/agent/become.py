"""From a copy of ours to somebody else's program: what a child must be and be rid of before its exec. It runs in the child."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
from typing import Any, Callable, List, Optional

from .environment import User
from .faults import Fault, Refused
from .starts import Start


def become(start: Start, log: int) -> None:
    """The program, in a session of its own. Returns never; raises Fault, with where it failed."""
    if os.getsid(0) != os.getpid():
        os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, number in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, number)
    settle(start)
    _doing("'%s' cannot be executed" % start.file, start.file, lambda: os.execve(start.file, start.argv, start.environment))


def settle(start: Start) -> None:
    """Everything but the exec: signals, weight, user, umask, directory. Raises Fault."""
    plain_signals()
    _weigh(start)
    if start.user is not None:
        name = start.user.name or "uid %d" % start.user.uid
        _doing("cannot become %s" % name, "workload: user", lambda: identity(start.user, start.groups))
    os.umask(start.umask)
    _doing("cannot enter the directory", start.directory, lambda: os.chdir(start.directory))


def rehearse(start: Start) -> None:
    """Tries all but the exec in a child. Raises Refused with what would fail."""
    answer, tell = os.pipe()
    child = os.fork()
    if not child:
        try:
            settle(start)
            _doing("'%s' cannot be executed" % start.file, start.file, lambda: _may_execute(start.file))
        except Fault as fault:
            os.write(tell, json.dumps(fault.as_dict()).encode())
        finally:
            os._exit(0)
    os.close(tell)
    with os.fdopen(answer, "rb") as said:
        found = said.read()
    os.waitpid(child, 0)
    if found:
        told = json.loads(found)
        raise Refused(told["what"], where=told["where"], todo=told["todo"])


def _may_execute(path: str) -> None:
    if not os.access(path, os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def plain_signals() -> None:
    """Every signal at its default, none blocked."""
    for number in range(1, signal.NSIG):
        if number not in (signal.SIGKILL, signal.SIGSTOP, 32, 33):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def identity(user: Optional[User], groups: Optional[List[int]]) -> None:
    """Becomes the user, in those groups or in the user's own; None: stays who we are. Raises OSError."""
    if user is not None:
        os.setgroups(groups if groups is not None else os.getgrouplist(user.name, user.gid))
        os.setgid(user.gid)
        os.setuid(user.uid)


def _weigh(start: Start) -> None:
    """Nice, limits, the weight for the out-of-memory killer: all of it where it was asked for, else as far as we may."""
    acts = []
    if start.nice is not None:
        acts.append(("nice %d" % start.nice, lambda: os.setpriority(os.PRIO_PROCESS, 0, start.nice or 0)))
    for name, pair in start.limits.items():
        acts.append(("the limit %s" % name[len("RLIMIT_") :].lower(), _limiting(name, pair)))
    if start.oom_score_adj is not None:
        acts.append(("oom_score_adj %d" % start.oom_score_adj, _weighing(start.oom_score_adj)))
    for what, act in acts:
        try:
            _doing("cannot set %s" % what, "workload", act)
        except Fault:
            if start.asked:
                raise


def _limiting(name: str, pair: List[int]) -> Callable[[], Any]:
    return lambda: resource.setrlimit(getattr(resource, name), (pair[0], pair[1]))


def _weighing(weight: int) -> Callable[[], Any]:
    def act() -> None:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write(str(weight))

    return act


def _doing(what: str, where: str, act: Callable[[], Any]) -> None:
    try:
        act()
    except (AttributeError, OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        if getattr(error, "errno", None) == errno.ENOENT and os.path.isfile(where):
            reason = "its interpreter is not there"
        raise Fault("%s: %s" % (what, reason), where=where, todo="mend the command, its rights, or the user") from error
