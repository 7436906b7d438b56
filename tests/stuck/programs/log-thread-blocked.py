#!/usr/bin/env python3
# state: a thread that prints is held by a full pipe, and the main thread waits for room in its queue
# before: output-blocked running
# send: INT
# until: says leaving
# after: output-blocked
# fair: exit-blocked
# useless: false
# rest: S
# cure: TERM
import os
import queue
import subprocess
import threading

reader = subprocess.Popen(["sleep", "600"], stdin=subprocess.PIPE)
lines = queue.Queue(4)


def printer():
    while True:
        os.write(reader.stdin.fileno(), lines.get())


threading.Thread(target=printer).start()
try:
    while True:
        try:
            lines.put(b"loss 0.1\n" * 100, timeout=1.0)
        except queue.Full:
            print("ready", os.getpid(), flush=True)
            lines.put(b"loss 0.1\n")
finally:
    print("leaving", flush=True)
