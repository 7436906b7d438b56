#!/usr/bin/env python3
# state: Python runs handlers in its main thread, and that one has ended: the signal is taken, and nobody ever handles it
# send: INT
# until: taken
# after: handler-not-run
# fair: signal-swallowed
# next: signal
# useless: false
# rest: Z
# cure: TERM
import ctypes
import os
import threading
import time
from pathlib import Path


def train():
    main = Path(f"/proc/self/task/{os.getpid()}/stat")
    while ") Z " not in main.read_text():
        time.sleep(0.01)
    print("ready", os.getpid(), flush=True)
    while True:
        time.sleep(0.05)


threading.Thread(target=train).start()
ctypes.CDLL(None).pthread_exit(None)
