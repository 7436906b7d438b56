#!/usr/bin/env python3
# state: the process was ended, its main thread is dead, and a loader thread is still held in the kernel by a read of a remote file
# send: TERM
# until: state Z
# after: exiting-stuck
# next: fix-filesystem
# useless: true
# needs: fuse
# cure: KILL daemon
import os
import threading
import time
from pathlib import Path

import _silent


def load(path):
    os.stat(path)


place = _silent.mount(_silent.LOOKUP)
threading.Thread(target=load, args=(place + "/batch",), daemon=True).start()
while "request_wait" not in "".join(path.read_text() for path in Path("/proc/self/task").glob("*/wchan")):
    time.sleep(0.01)
print("ready", os.getpid(), flush=True)
while True:
    time.sleep(0.2)
