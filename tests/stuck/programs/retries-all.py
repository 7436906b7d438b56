#!/usr/bin/env python3
# state: each batch is tried again after whatever was raised, the interrupt too
# send: INT
# until: says again
# after: signal-swallowed
# next: signal
# useless: false
# cure: TERM
import os
import time


def batch():
    time.sleep(0.1)


print("ready", os.getpid(), flush=True)
while True:
    try:
        batch()
    except BaseException as error:
        print("again after", type(error).__name__, flush=True)
