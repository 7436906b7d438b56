#!/usr/bin/env python3
# state: the handler waits for a worker, which waits for the lock of the code that was interrupted
# send: INT
# until: says handler
# after: deadlocked
# next: signal
# rest: S
# cure: KILL
import os
import signal
import threading
import time

model = threading.Lock()


def save():
    with model:
        print("saved", flush=True)


def leave(number, frame):
    os.write(1, b"handler entered\n")
    worker.join()


signal.signal(signal.SIGINT, leave)
signal.signal(signal.SIGTERM, leave)
worker = threading.Thread(target=save)
with model:
    worker.start()
    print("ready", os.getpid(), flush=True)
    while True:
        time.sleep(0.2)
