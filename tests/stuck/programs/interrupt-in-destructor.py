#!/usr/bin/env python3
# state: most of its time passes in a destructor, where an exception is only printed: the interrupt gets lost
# send: INT
# until: says Exception
# after: signal-swallowed
# useless: false
# cure: TERM
import os
import time

words = [f"ready {os.getpid()}"]


class Buffer:
    def __del__(self):
        if words:
            print(words.pop(), flush=True)
        end = time.monotonic() + 0.2
        while time.monotonic() < end:
            time.sleep(0.02)


while True:
    Buffer()
