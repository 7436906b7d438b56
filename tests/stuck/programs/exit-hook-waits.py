#!/usr/bin/env python3
# state: the interrupt ended the main code; a hook at the exit of the interpreter waits for an upload that nobody does
# send: INT
# until: says hook
# after: exit-blocked
# useless: false
# rest: S
# cure: TERM
import atexit
import os
import threading
import time


def upload():
    print("hook entered", flush=True)
    done.wait()


done = threading.Event()
atexit.register(upload)
print("ready", os.getpid(), flush=True)
while True:
    time.sleep(0.1)
