#!/usr/bin/env python3
# state: INT began a save, and TERM, for which there is no handler, cut it
# send: INT TERM
# until: says saving
# after: stopped-dirty
# cure: none
import os
import time

try:
    print("ready", os.getpid(), flush=True)
    while True:
        time.sleep(0.1)
except KeyboardInterrupt:
    with open("model.pt.tmp", "wb", 0) as out:
        print("saving", flush=True)
        while True:
            out.write(bytes(100_000))
            time.sleep(0.02)
