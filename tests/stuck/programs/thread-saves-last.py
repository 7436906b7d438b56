#!/usr/bin/env python3
# state: the main code is done by the interrupt, and a thread that is no daemon writes the last checkpoint: one INT more would cut it
# send: INT
# until: says saving
# after: shutdown-progressing/writing
# next: wait
# useless: false
# cure: KILL
import os
import threading
import time

asked = threading.Event()


def save():
    asked.wait()
    with open("model.pt.part", "wb", 0) as out:
        print("saving", flush=True)
        while True:
            out.write(bytes(100_000))
            time.sleep(0.02)


threading.Thread(target=save).start()
try:
    print("ready", os.getpid(), flush=True)
    while True:
        time.sleep(0.1)
finally:
    asked.set()
