"""launch: starts the program itself, without a shell: a session of its own, stdin from nowhere, output appended to the log, every
signal at its default and nothing blocked. A small parent, the minder, keeps its exit status.
"""

from __future__ import annotations

import os
import resource
import signal
import time
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from . import environment, newest, procfs, program, state, tree
from .faults import Fault
from .title import show_as

SESSION_BOUND = ("SSH_", "TMUX", "STY", "INVOCATION_ID", "JOURNAL_STREAM", "NOTIFY_SOCKET", "DEPLOYCTL_")  # names of a session that is gone


class Start(NamedTuple):
    """Everything that the start of a program needs, resolved."""

    file: str
    argv: List[str]
    environment: Dict[str, str]
    directory: str
    log: str
    user: Optional[environment.User]  # None: as the agent
    groups: Optional[List[int]]
    umask: int
    nice: Optional[int]
    limits: Dict[str, List[int]]
    oom_score_adj: Optional[int]


def launch(job: Any, operation: Dict[str, Any]) -> None:
    """Emits `launched` and writes the record. Raises Fault when something runs already, or the program cannot be executed.

    operation: as "new" with argv, directory, environment, log, user; or as "before": what ran before, as it ran.
    """
    inherits = operation["as"] == "new" and operation.get("inherit")
    start = inheriting(job, operation) if inherits else new(job, operation) if operation["as"] == "new" else as_before(job)
    found = tree.find(job.workload, state.read_json(job.home.record), job.mark).top
    if found is not None:
        if not all(procfs.carries(found["pid"], entry) for entry in _marks(job, operation["as"])):
            raise Fault("it already runs as pid %d" % found["pid"], where=job.workload["name"], todo="see who started it")
        start = start._replace(argv=found["argv"]) if operation.get("newest") else start
        _write_down(job, start, operation["as"], found["pid"], _offset_of(job, start.log))  # an earlier life of this job started it
        return
    start = newest.filled(job, operation, start)
    handle, offset = _open_log(job, start)
    try:
        pid = spawn(job, start, handle)
    finally:
        os.close(handle)
    _write_down(job, start, operation["as"], pid, offset)


def new(job: Any, operation: Dict[str, Any]) -> Start:
    """The start that the playbook asks for, in the clean environment."""
    user = environment.user_of(operation["user"])
    surroundings = environment.clean(user, operation["environment"])
    if not os.path.isdir(operation["directory"]):
        raise Fault("there is no such directory", where=operation["directory"], todo="correct `directory`, or push something there")
    found = program.find(operation["argv"], surroundings, operation["directory"])
    log = os.path.join(operation["directory"], operation["log"])
    changes = user if user.uid != os.geteuid() else None
    return Start(
        found.path, operation["argv"], _marked(job, surroundings, "new"), operation["directory"], log, changes, groups=None, umask=0o022,
        nice=None, limits={}, oom_score_adj=None,
    )  # fmt: skip


def inheriting(job: Any, operation: Dict[str, Any]) -> Start:
    """What ran before as it ran, but with the operation's argv and log, its `environment` added and the names in `without` left out."""
    start = as_before(job)
    kept = {name: text for name, text in start.environment.items() if name not in operation["without"]}
    surroundings = _marked(job, dict(kept, **operation["environment"]), "new")
    return start._replace(argv=operation["argv"], environment=surroundings, log=os.path.join(start.directory, operation["log"]))


def as_before(job: Any) -> Start:
    """The start that brings back what ran before: argv, environment, directory, user, limits as read before the first signal.

    Ignored signals and a blocked mask are not brought back: they are the fault that the start of old brought in.
    """
    was = job.capture
    surroundings = {name: text for name, text in was["environment"].items() if not name.startswith(SESSION_BOUND)}
    found = program.running(was["argv"], was["environment"], was["directory"], was["exe"])
    log = was.get("stdout") or os.path.join(job.workload["directory"], job.workload["log"] or os.devnull)
    user = environment.User("", was["uid"], was["gid"], "", "") if was["uid"] != os.geteuid() else None
    return Start(
        found.path, was["argv"], _marked(job, surroundings, "before"), was["directory"], log, user, was["groups"], was["umask"],
        was["nice"], was["limits"], was["oom_score_adj"],
    )  # fmt: skip


def _marked(job: Any, surroundings: Dict[str, str], which: str) -> Dict[str, str]:
    return dict(surroundings, **dict(os.fsdecode(entry).split("=", 1) for entry in _marks(job, which)))


def _marks(job: Any, which: str) -> List[bytes]:
    """What a program carries by which we know that this run started it, as the new one or as what ran before."""
    return [job.mark, b"DEPLOYCTL_RUN=" + job.run.encode(), b"DEPLOYCTL_START=" + which.encode()]


def _open_log(job: Any, start: Start) -> Tuple[int, int]:
    """(descriptor, offset where this start's output begins); one marked line tells the starts apart."""
    try:
        os.makedirs(os.path.dirname(start.log), exist_ok=True)
        handle = os.open(start.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        if start.user is not None and os.fstat(handle).st_size == 0:
            os.fchown(handle, start.user.uid, start.user.gid)
    except OSError as error:
        raise Fault("cannot write the log: %s" % error.strerror, where=start.log, todo="mend its directory or rights") from error
    stamp = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    try:
        os.write(handle, _starting_line(job) + stamp.encode() + b"\n")
    except OSError:
        pass  # on a full disk the program matters more than the line
    return handle, os.fstat(handle).st_size


def _starting_line(job: Any) -> bytes:
    return ("--- deployctl: %s started by run %s, " % (job.workload["name"], job.run)).encode()


def _offset_of(job: Any, log: str) -> int:
    """Where the last start by this run begins in the log; its beginning when the line is not there."""
    try:
        return procfs.read(log).rfind(_starting_line(job)) + 1
    except OSError:
        return 0


def spawn(job: Any, start: Start, log: int) -> int:
    """The program's pid. Raises Fault with the reason when it could not be executed."""
    answer, tell = os.pipe()
    minder = os.fork()
    if not minder:
        try:
            os.close(answer)
            _mind(job, start, log, tell)
        finally:
            os._exit(1)
    os.close(tell)
    with os.fdopen(answer) as lines:
        said = dict(line.split(" ", 1) for line in lines.read().splitlines())
    if "pid" not in said or "error" in said:
        os.waitpid(minder, 0)
        raise Fault(said.get("error", "the minder died"), where=start.file, todo="mend the command, the directory or the user")
    return int(said["pid"])


def _mind(job: Any, start: Start, log: int, tell: int) -> None:
    """The minder: starts the program as its child, waits for it, writes down how it ended. It holds no lock."""
    os.setsid()
    for descriptor in job.private:
        os.close(descriptor)
    child = os.fork()
    if not child:
        try:
            _become(start, log)
        except OSError as error:
            os.write(tell, ("error %s\n" % (error.strerror or error)).encode())
        finally:
            os._exit(127)
    show_as("deployctl: minder of %s (run %s)" % (job.workload["name"], job.run))
    seen = procfs.look(child) or {}
    os.write(tell, b"pid %d\n" % child)
    os.close(tell)
    os.close(log)
    _, status = os.waitpid(child, 0)
    ended = {"pid": child, "started": seen.get("started"), "run": job.run, "ended": round(time.time(), 3)}
    ended.update({"signal": os.WTERMSIG(status)} if os.WIFSIGNALED(status) else {"status": os.WEXITSTATUS(status)})
    job.keep(job.home.exit, ended)


def _become(start: Start, log: int) -> None:
    """In the child: from the minder's copy to the program. Raises OSError."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, number in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, number)
    for number in range(1, signal.NSIG):
        if number not in (signal.SIGKILL, signal.SIGSTOP, 32, 33):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    _weigh(start)
    if start.user is not None:
        os.setgroups(start.groups if start.groups is not None else os.getgrouplist(start.user.name, start.user.gid))
        os.setgid(start.user.gid)
        os.setuid(start.user.uid)
    os.umask(start.umask)
    os.chdir(start.directory)
    os.execve(start.file, start.argv, start.environment)


def _weigh(start: Start) -> None:
    """Nice, limits, the weight for the out-of-memory killer: as far as we may."""
    if start.nice is not None:
        os.setpriority(os.PRIO_PROCESS, 0, start.nice)
    for name, (soft, hard) in start.limits.items():
        try:
            resource.setrlimit(getattr(resource, name), (soft, hard))
        except (AttributeError, OSError, ValueError):
            pass  # a limit above ours, or one that this Python does not know
    if start.oom_score_adj:
        try:
            with open("/proc/self/oom_score_adj", "w") as weight:
                weight.write(str(start.oom_score_adj))
        except OSError:
            pass


def _write_down(job: Any, start: Start, which: str, pid: int, offset: int) -> None:
    """The record of what runs now, before anybody hears of it. flags: by name, as they were written (docs/flags.md)."""
    flags = job.workload.get("flags" if which == "new" else "flags_before", {})
    seen = procfs.look(pid) or {"pid": pid, "started": None, "boot": None}
    job.launched, job.launched_argv, job.started_at = seen, start.argv, time.time()
    record = {
        "version": state.VERSION, "workload": job.workload["name"], "run": job.run, "pid": pid, "started": seen["started"],
        "boot": seen["boot"], "argv": start.argv, "directory": start.directory, "environment": sorted(start.environment),
        "log": start.log, "log_offset": offset, "at": round(job.started_at, 3), "who": job.spec["who"],
        "flags": flags,
    }  # fmt: skip
    job.keep(job.home.record, record)
    job.record = record
    job.emit(
        "launched", sync=True, pid=pid, argv=start.argv, directory=start.directory, log=start.log, log_offset=offset,
        environment=sorted(start.environment),
    )  # fmt: skip
