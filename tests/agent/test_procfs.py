from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from deployctl.agent import capture, procfs
from deployctl.agent.faults import Refused

from .conftest import BLOCKS, IGNORES, SLEEP, as_nobody, asleep, until

ONE_BLOCKS = """import signal, threading, time
def run(name):
    if name == {0!r}: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    ready.wait()
    if name == 'main': print('READY', flush=True)
    time.sleep(600)
ready = threading.Barrier(2)
threading.Thread(target=run, args=('other',), daemon=True).start()
run('main')
"""


def test_a_name_with_brackets_and_spaces_is_read_right(start: Any) -> None:
    started = start("open('/proc/self/comm', 'w').write('a) R 1 (b')\n" + SLEEP)
    seen = asleep(started.pid)
    assert (seen["comm"], seen["ppid"], seen["state"]) == ("a) R 1 (b", os.getpid(), "S")


def test_a_look_tells_who_it_is_and_since_when(start: Any) -> None:
    started = start(SLEEP)
    seen = procfs.look(started.pid)
    assert seen["argv"] == [sys.executable, started.script]
    assert abs(seen["since"] - os.stat(f"/proc/{started.pid}").st_ctime) < 5
    assert (seen["uid"], seen["traced"], seen["pid1"], seen["unreadable"]) == (os.getuid(), 0, False, [])
    assert "INT" in seen["caught"]


def test_a_process_is_the_same_until_it_ends_and_a_zombie_is_not(start: Any) -> None:
    started = start(SLEEP)
    seen = procfs.look(started.pid)
    assert procfs.same(seen)
    assert not procfs.same(dict(seen, started=seen["started"] + 1))
    assert not procfs.same(dict(seen, boot="another"))
    os.kill(started.pid, signal.SIGKILL)
    until(lambda: procfs.look(started.pid)["state"] == "Z")
    assert not procfs.same(seen)


def test_a_process_that_is_gone_is_none() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert procfs.look(process.pid) is None
    assert procfs.glance(process.pid) is None
    assert procfs.usage(process.pid) is None
    assert procfs.environment(process.pid) is None


def test_a_main_thread_that_left_early_is_no_zombie(start: Any) -> None:
    text = "import ctypes, threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\nprint('READY', flush=True)\n"
    started = start(text + "ctypes.CDLL(None).pthread_exit(None)\n")
    until(lambda: b") Z " in procfs.read(f"/proc/{started.pid}/stat"), "the end of the main thread")
    assert procfs.same(asleep(started.pid))


def test_ignored_and_blocked_signals_are_named(start: Any) -> None:
    assert "TERM" in procfs.look(start(IGNORES.format(names="[15]")).pid)["ignored"]
    assert procfs.look(start(BLOCKS).pid)["blocked"] == ["INT"]


@pytest.mark.parametrize("blocks", ["main", "other"])
def test_a_signal_that_one_thread_takes_is_not_blocked(start: Any, blocks: str) -> None:
    started = start(ONE_BLOCKS.format(blocks))
    assert procfs.look(started.pid)["blocked"] == []


def test_usage_grows_with_what_is_written(start: Any) -> None:
    started = start("print('READY', flush=True)\nwhile True: open('/dev/null', 'wb').write(b'x' * 99999)\n")
    first = procfs.usage(started.pid)
    until(lambda: procfs.usage(started.pid)["written_bytes"] > first["written_bytes"] + 99999)
    until(lambda: procfs.usage(started.pid)["cpu_ticks"] > first["cpu_ticks"])
    until(lambda: procfs.usage(started.pid)["switches"] > first["switches"])


def test_an_environment_keeps_its_bytes(start: Any) -> None:
    started = start(SLEEP, env={b"PATH": b"/bin", b"ODD": b"a=\xff\nb", "PYTEST_CURRENT_TEST": "1"})
    assert procfs.environment(started.pid)["ODD"].encode("utf-8", "surrogateescape") == b"a=\xff\nb"


def test_a_capture_has_all_that_a_start_needs(start: Any, tmp_path: Any) -> None:
    script = tmp_path / "odd.py"
    script.write_text("import time\ntime.sleep(600)\n")
    argv = [sys.executable, str(script), "", "two words\nsecond line", "--name=Grüße"]
    before = f"umask 027; ulimit -n 77; exec \"$@\" >>'{tmp_path}/out' 2>'{tmp_path}/err'"
    environment = {"PATH": os.environ["PATH"], "A": "1"}
    process = subprocess.Popen(["nice", "-n", "5", "bash", "-c", before, "x", *argv], cwd=str(tmp_path), env=environment)
    try:
        until(lambda: procfs.argv_of(process.pid) == argv)
        found = capture.capture(process.pid)
    finally:
        process.kill()
        process.wait()
    assert found["argv"] == argv
    assert (found["directory"], found["umask"], found["environment"]["A"]) == (str(tmp_path), 0o027, "1")
    assert found["nice"] == os.getpriority(os.PRIO_PROCESS, 0) + 5
    assert found["limits"]["RLIMIT_NOFILE"] == [77, 77]
    assert (found["stdout"], found["stderr"]) == (str(tmp_path / "out"), str(tmp_path / "err"))
    assert found["appends"] == {"stdout": True, "stderr": False}
    assert found["exe"] == os.path.realpath(sys.executable)
    assert (found["uid"], found["gid"], found["groups"]) == (os.getuid(), os.getgid(), os.getgroups())


TITLE = """import ctypes, sys
fields = open('/proc/self/stat').read().rsplit(')', 1)[1].split()
start, end = int(fields[45]), int(fields[46])
ctypes.memmove(start, b'VLLM::Worker'.ljust(end - start, b'\\0'), end - start)
"""


def test_a_command_line_that_was_written_over_is_refused(start: Any) -> None:
    started = start(TITLE + SLEEP)
    with pytest.raises(Refused, match="written over"):
        capture.capture(started.pid)


def test_a_directory_that_is_gone_is_refused(start: Any, tmp_path: Any) -> None:
    directory = tmp_path / "gone"
    directory.mkdir()
    started = start(SLEEP, cwd=str(directory))
    directory.rmdir()
    with pytest.raises(Refused, match="directory"):
        capture.capture(started.pid)


def test_a_process_that_ended_is_refused() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    with pytest.raises(Refused, match="ended"):
        capture.capture(process.pid)


def test_what_may_not_be_read_is_refused_by_another_user(start: Any) -> None:
    pid = start(SLEEP).pid
    assert "may not be read" in as_nobody(f"try: capture.capture({pid})\nexcept capture.Refused as fault: print(fault.what)")
    assert as_nobody(f"print(procfs.usage({pid})['written_bytes'], procfs.environment({pid}), procfs.hidden({pid}))") == "None None False\n"
