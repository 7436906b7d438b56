#!/usr/bin/env python3
# state: the main thread has gone down by the interrupt, and a thread that is no daemon trains on
# send: INT
# until: says left
# after: exit-blocked/threads
# useless: false
# cure: INT, TERM
import os
import threading
import time


def train():
    while True:
        time.sleep(0.05)


worker = threading.Thread(target=train)
worker.start()
try:
    print("ready", os.getpid(), flush=True)
    while True:
        time.sleep(0.1)
except KeyboardInterrupt:
    print("left main", flush=True)
