#!/usr/bin/env python3
# state: the main thread has ended by itself and shows as Z, a worker thread trains on: the process is alive, and no zombie
# after: running
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
