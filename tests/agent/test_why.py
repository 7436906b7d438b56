"""What `why` says after a signal, from a look before and a look after, of processes that are really in that state."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from deployctl.agent import evidence, procfs, state, why

from .conftest import LEAVES_WORKERS, SLEEP, alive, asleep, until
from .judged import judged

NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture(autouse=True)
def short(monkeypatch: Any) -> None:
    """The looks stand as near to each other as a rate allows: no loop of these programs is slow."""
    monkeypatch.setattr(why, "APART", evidence.APART + 0.01)
    monkeypatch.setattr(why, "LONGER", 0.0)


def look(pid: int, **more: Any) -> Any:
    return why.why(None, dict(more, pid=pid))


def before_and_after(started: Any, name: str = "INT", reacted: Any = None, pid: int = 0) -> Any:
    """The look after the signal, once the program has done what the test waits for."""
    pid = pid or started.pid
    first = look(pid)
    os.kill(pid, getattr(signal, f"SIG{name}"))
    until(reacted or (lambda: name not in procfs.look(pid)["pending"]))
    return look(pid, since=first["look"], after=[name])


def rested(pid: int, call: str) -> Any:
    """Whether the main thread waits in that call."""

    def now() -> bool:
        thread = evidence.main_thread(evidence.sample(procfs.look(pid)))
        return thread is not None and evidence.calls.family(thread) == call

    return now


def gone(started: Any, pid: int = 0) -> Any:
    def now() -> bool:
        started.process.poll()
        return not alive(pid or started.pid)

    return now


def said(found: Any) -> Any:
    return found["verdict"], found["detail"]


def test_a_process_that_nobody_signalled_is_running_and_says_what_it_would_hear(start: Any) -> None:
    found = look(asleep(start(SLEEP).pid)["pid"])
    assert (found["verdict"], found["next"], found["kill_useless"]) == ("running", "none", False)
    assert [found["signals"][name]["does"] for name in ("INT", "TERM", "KILL")] == ["handler", "end", "end"]


def test_what_would_not_be_heard_is_said_before_anything_is_sent(start: Any) -> None:
    found = look(start("import signal\nsignal.signal(2, signal.SIG_IGN)\n" + SLEEP).pid)
    assert (found["verdict"], found["also"], found["next"]) == ("running", ["signal-ignored"], "signal:TERM")


def record(tmp_path: Any, pid: int, *events: Any) -> Any:
    """A state directory in which a run has left these events about a process that it launched."""
    home = state.Home(str(tmp_path), "train")
    home.make()
    state.write_json(home.record, dict(procfs.look(pid)))
    file = state.EventFile(home.events("20261129-120000-abcd"), "20261129-120000-abcd", "here")
    for what, fields in events:
        file.say("cutover", what, **fields)
    return {"workload": {"name": "train"}, "state": str(tmp_path)}


def test_after_a_stop_the_signals_and_what_it_found_are_those_of_its_record(start: Any, tmp_path: Any) -> None:
    pid = asleep(start(SLEEP.replace("time.sleep(600)", "while True: time.sleep(0.1)")).pid)["pid"]
    found = {"verdict": "exit-blocked", "detail": "threads", "confidence": "strong", "next": "signal:INT", "kill_useless": False}
    told = dict(found, evidence=[], pids=[pid], taken=["INT"])
    request = record(tmp_path, pid, ("rung", {"signal": "INT", "wait": 1, "index": 0, "pids": [pid]}), ("not-stopped", told))
    answer = why.why(None, request)
    assert (answer["after"], answer["pid"]) == (["INT"], pid)
    assert (*said(answer), answer["confidence"]) == ("exit-blocked", "threads", "strong")
    assert answer["also"] == ["signal-swallowed"]


def test_a_look_changes_nothing(start: Any) -> None:
    started = start(SLEEP)
    old = asleep(started.pid)
    look(started.pid)
    assert procfs.look(started.pid) == dict(old, since=procfs.look(started.pid)["since"])


CHECKPOINT = """import time
print('READY', flush=True)
try:
    while True: time.sleep(0.1)
except KeyboardInterrupt:
    with open(__file__ + '.tmp', 'wb') as out:
        while True:
            out.write(b'x' * 20000)
            out.flush()
            time.sleep(0.05)
"""


def test_a_file_that_grows_after_the_signal_is_a_shutdown_in_progress(start: Any) -> None:
    started = start(CHECKPOINT)
    found = before_and_after(started, reacted=lambda: os.path.exists(started.script + ".tmp"))
    assert (*said(found), found["next"]) == ("shutdown-progressing", "writing", "wait")
    assert any(line.startswith("grows: " + started.script) for line in found["evidence"])


JOINS = """import subprocess, sys, time
child = subprocess.Popen([sys.executable, '-c', 'import signal, time; signal.signal(2, signal.SIG_IGN); time.sleep(600)'])
while not open('/proc/%d/cmdline' % child.pid).read().startswith(sys.executable): pass
def ignored(pid): return int(open('/proc/%d/status' % pid).read().split('SigIgn:')[1].split()[0], 16)
while not ignored(child.pid) & 2: time.sleep(0.01)
print('READY', child.pid, flush=True)
try:
    while True: time.sleep(0.1)
except KeyboardInterrupt:
    child.wait()
"""


def test_a_wait_for_a_child_names_it_and_why_it_does_not_end(start: Any) -> None:
    started = start(JOINS)
    found = before_and_after(started, reacted=rested(started.pid, "wait4"))
    assert said(found) == ("waiting-for-child", "child-ignores")
    assert (found["next"], found["confidence"]) == (f"signal-child:{started.pids[0]}", "proven")


def test_a_shell_that_waited_before_keeps_the_signal_from_its_child(start: Any) -> None:
    inner = f'"{sys.executable}" -c "import os, time; print(\'READY\', os.getpid(), flush=True); time.sleep(600)"'
    started = start(f"trap 'exit 1' INT\n{inner}\ntrue\n", before=["bash"], name=f"run_{os.getpid()}.sh")
    found = before_and_after(started)
    assert said(found) == ("wrapper-not-forwarding", "shell")
    assert found["next"] == f"signal-child:{started.pids[0]}"


LOCKED = """import signal, threading, time
lock = threading.Lock()
def leave(*_):
    with lock: raise SystemExit
signal.signal(signal.SIGINT, leave)
with lock:
    print('READY', flush=True)
    while True: time.sleep(0.1)
"""


def test_a_handler_that_needs_the_lock_of_what_it_interrupted_is_deadlocked(start: Any) -> None:
    started = start(LOCKED)
    found = before_and_after(started, reacted=rested(started.pid, "futex"))
    assert (*said(found), found["next"]) == ("deadlocked", "handler", "signal:TERM")


LEAVES_THREAD = """import os, sys, threading, time
os.dup2(os.open(__file__ + '.log', os.O_WRONLY | os.O_CREAT), 2)
threading.Thread(target=time.sleep, args=(600,)).start()
print('READY', flush=True)
while True: time.sleep(0.1)
"""


def test_an_interpreter_that_waits_for_a_thread_at_its_end_is_told_by_its_traceback(start: Any) -> None:
    started = start(LEAVES_THREAD)
    found = before_and_after(started, reacted=rested(started.pid, "futex"))
    assert (*said(found), found["next"]) == ("exit-blocked", "threads", "signal:INT")
    assert "printed since: KeyboardInterrupt" in found["evidence"]


NATIVE = """import ctypes
libc = ctypes.CDLL(None)
lock = ctypes.create_string_buffer(64)
libc.pthread_mutex_lock(lock)
print('READY', flush=True)
libc.pthread_mutex_lock(lock)
"""


def test_a_native_lock_that_is_waited_for_before_and_after_keeps_the_handler_from_running(start: Any) -> None:
    started = start(NATIVE)
    until(rested(started.pid, "futex"))
    found = before_and_after(started)
    assert (*said(found), found["confidence"]) == ("handler-not-run", "native-blocked", "strong")


def test_a_native_loop_that_goes_on_keeps_the_handler_from_running(start: Any) -> None:
    started = start("import itertools, collections\nprint('READY', flush=True)\ncollections.deque(itertools.repeat(0), 0)\n")
    found = before_and_after(started)
    assert (*said(found), found["next"]) == ("handler-not-run", "native-busy", "signal:TERM")


def test_without_a_look_before_the_last_words_of_the_log_tell_the_end_of_the_interpreter(start: Any) -> None:
    started = start(LEAVES_THREAD)
    os.kill(started.pid, signal.SIGINT)
    until(rested(started.pid, "futex"))
    assert said(look(started.pid, after=["INT"])) == ("exit-blocked", "threads")


SWALLOWS_ALL = """import time
print('READY', flush=True)
while True:
    try: time.sleep(0.1)
    except: open(__file__ + '.caught', 'w').close()
"""


def test_a_loop_that_goes_on_as_before_has_swallowed_the_signal(start: Any) -> None:
    started = start(SWALLOWS_ALL)
    found = before_and_after(started, reacted=lambda: os.path.exists(started.script + ".caught"))
    assert (*said(found), found["confidence"]) == ("signal-swallowed", "except", "hint")


SETS_FLAG = """import os, signal, sys, time
os.dup2(os.open(__file__ + '.log', os.O_WRONLY | os.O_CREAT), 2)
def note(*_): print('will stop after this step', file=sys.stderr, flush=True)
signal.signal(signal.SIGINT, note)
signal.signal(signal.SIGTERM, note)
print('READY', flush=True)
while True: time.sleep(0.1)
"""


def test_a_handler_that_says_it_will_stop_is_believed(start: Any) -> None:
    started = start(SETS_FLAG)
    found = before_and_after(started, reacted=lambda: os.path.getsize(started.script + ".log") > 0)
    assert (*said(found), found["next"]) == ("shutdown-pending", "flag", "wait")


FULL = """import os
read, write = os.pipe()
print('READY', flush=True)
while True: os.write(write, b'x' * 65536)
"""


def test_a_full_pipe_that_nobody_reads_is_told_before_any_signal(start: Any) -> None:
    started = start(FULL)
    until(rested(started.pid, "write"))
    found = look(started.pid)
    assert (*said(found), found["confidence"]) == ("output-blocked", "pipe-full", "proven")
    assert "its reader: none that can be seen" in found["evidence"]


def test_workers_that_outlive_the_main_process_are_named(start: Any) -> None:
    started = start(LEAVES_WORKERS)
    found = before_and_after(started, reacted=gone(started))
    assert found["verdict"] == "children-survive"
    assert sorted(row["pid"] for row in found["tree"]) == sorted(started.pids)


RESPAWNS = """while true; do "$PYTHON" -c '
import os, time
print("READY", os.getpid(), os.getppid(), flush=True)
time.sleep(600)' || true; done
"""


def test_a_process_that_something_starts_again_is_respawned(start: Any) -> None:
    started = start(RESPAWNS, before=["sh"], name=f"loop_{os.getpid()}.sh", env=dict(os.environ, PYTHON=sys.executable))
    old = started.pids[0]
    found = before_and_after(started, "TERM", lambda: not alive(old) and len(children(started.pid)) == 1, old)
    started.pids += children(started.pid)
    assert said(found) == ("respawned", "same-parent")


def children(pid: int) -> Any:
    return [glance.pid for glance in map(procfs.glance, procfs.everyone()) if glance and glance.ppid == pid]


LISTENS = """import os, signal, socket, time
server = socket.create_server(('127.0.0.1', 0))
child = os.fork()
if not child:
    os.setsid()
    time.sleep(600)
print('READY', child, flush=True)
time.sleep(600)
"""


def test_a_port_that_is_still_held_names_its_holder(start: Any) -> None:
    started = start(LISTENS)
    found = before_and_after(started, "KILL", gone(started))
    assert found["verdict"] == "children-survive"
    assert "resource-held" in found["also"]
    assert any(line.startswith(f"held: kind port pid {started.pids[0]}") for line in found["evidence"])


LOCK_FILE = "import os, sys\nwith open(__file__ + '.lock', 'w') as out: out.write(str(os.getpid()))\n" + SLEEP


def test_a_lock_file_that_a_killed_process_leaves_is_stale(start: Any, tmp_path: Any) -> None:
    started = start(LOCK_FILE, cwd=tmp_path)
    found = before_and_after(started, "KILL", gone(started))
    assert said(found) == ("resource-held", "stale-lock")
    assert found["also"] == ["stopped-dirty"]


def test_a_handled_signal_that_ends_it_is_a_clean_stop(start: Any, tmp_path: Any) -> None:
    started = start(SLEEP, cwd=tmp_path)
    found = before_and_after(started, reacted=gone(started))
    assert (*said(found), found["kill_useless"]) == ("stopped", "", True)


def test_a_pid_that_another_process_has_now_is_not_signalled(start: Any) -> None:
    started = start(SLEEP)
    first = look(started.pid)["look"]
    found = look(started.pid, since=dict(first, started=first["started"] - 1), after=["INT"])
    assert (*said(found), found["next"], found["kill_useless"]) == ("pid-reused", "started-later", "none", True)


def test_a_pid_file_that_is_older_than_the_process_means_another_one(start: Any, tmp_path: Any) -> None:
    started = start(SLEEP, cwd=tmp_path)
    (tmp_path / "train.pid").write_text(f"{started.pid}\n")
    assert look(started.pid)["verdict"] == "running"
    os.utime(tmp_path / "train.pid", (time.time() - 86400,) * 2)
    assert said(look(started.pid)) == ("pid-reused", "stale-pid-file")


@NEEDS_ROOT
def test_a_frozen_group_is_told_with_what_kill_would_do(start: Any) -> None:
    place = next((path for path in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup") if os.path.exists(path + "/cgroup.procs")), None)
    if place is None:
        pytest.skip("needs cgroup v2")
    started, group = start(SLEEP), f"{place}/why.{os.getpid()}"
    os.mkdir(group)
    try:
        with open(group + "/cgroup.procs", "w") as out:
            out.write(str(started.pid))
        with open(group + "/cgroup.freeze", "w") as out:
            out.write("1")
        until(lambda: "frozen 1" in pathlib.Path(group, "cgroup.events").read_text())
        found = look(started.pid)
        assert (*said(found), found["next"], found["kill_useless"]) == ("frozen", "cgroup-v2", "thaw", False)
        assert found["signals"]["INT"]["does"] == "queued"
    finally:
        os.kill(started.pid, signal.SIGKILL)
        started.process.wait()
        until(lambda: not pathlib.Path(group, "cgroup.procs").read_text())
        os.rmdir(group)


def test_dying_without_an_end_is_told_by_the_flags_of_the_threads() -> None:
    """The state itself is brought about in tests/stuck; here: the rule holds only where no CPU is used."""
    seen = procfs.look(os.getpid())
    now = dict(evidence.sample(seen), usage={"cpu_ticks": 0, "written_bytes": 0, "switches": 0, "read_bytes": 0})
    now["seen"]["state"], now["flags"] = "D", evidence.EXITING | evidence.SIGNALED
    now["threads"] = [dict(now["threads"][0], flags=now["flags"], state="D")]
    lately = dict(now, at=now["at"] - 1)
    assert judged(lately, now, "INT")["verdict"] == "exiting-stuck"
    busy = dict(now, usage=dict(now["usage"], cpu_ticks=100))
    assert judged(lately, busy, "INT")["verdict"] == "shutdown-progressing"


def test_nothing_under_that_number_and_no_earlier_look_is_a_guess() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    found = look(process.pid)
    assert (found["verdict"], found["confidence"], found["look"]) == ("stopped", "hint", None)


@NEEDS_ROOT
def test_a_process_that_proc_hides_from_us_is_not_taken_for_gone(start: Any) -> None:
    pid = start(SLEEP).pid
    code = f"""from deployctl.agent import why
import os
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
answer = why.why(None, {{"pid": {pid}}})
print(answer["verdict"], answer["detail"])
"""
    path = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(procfs.__file__))))
    inner = f'mount -t proc -o hidepid=2 proc /proc && exec {sys.executable} -c "$CODE"'
    argv = ["unshare", "--mount", "sh", "-c", inner]
    environment = dict(os.environ, PYTHONPATH=path, CODE=code)
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, timeout=60, env=environment, check=True)
    assert done.stdout.split() == ["no-permission", "hidden"]
