#!/usr/bin/env python3
# state: the pid of the ended process is given, on purpose, to a later run of the same program with the same command line
# send: INT
# until: says reused
# after: pid-reused/started-later
# needs: root
# cure: none
import ctypes
import os
import platform
import signal
import struct
import subprocess
import time

CLONE3 = 435  # the same number on every architecture
RUN = ["sleep", "600"]


def fork_as(pid):
    """A child with this pid. Source: clone(2), CLONE_ARGS_SIZE_VER1 with set_tid."""
    wanted = (ctypes.c_int * 1)(pid)
    words = [0, 0, 0, 0, int(signal.SIGCHLD), 0, 0, 0, ctypes.addressof(wanted), 1]
    arguments = ctypes.create_string_buffer(struct.pack("<10Q", *words))
    return ctypes.CDLL(None, use_errno=True).syscall(CLONE3, arguments, 80)


assert platform.machine() in ("x86_64", "aarch64")
trainer = subprocess.Popen(RUN)  # returns when that one is no longer a Python, which has a handler of its own
print("ready", trainer.pid, flush=True)
trainer.wait()
while True:
    second = fork_as(trainer.pid)
    if not second:
        os.execv("/bin/sleep", RUN)
    if second > 0:
        break
    time.sleep(0.01)
print("reused", second, flush=True)
os.waitpid(second, 0)
