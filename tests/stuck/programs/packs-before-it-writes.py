#!/usr/bin/env python3
# state: it slept before; since the interrupt it computes (it packs its state), and nothing is on the disk yet
# send: INT
# until: says packing
# after: shutdown-progressing
# next: wait
# useless: false
# cure: KILL
import os
import time
import zlib

try:
    print("ready", os.getpid(), flush=True)
    while True:
        time.sleep(0.1)
except KeyboardInterrupt:
    print("packing", flush=True)
    state = os.urandom(1 << 18)
    packed = [zlib.compress(state, 9) for _ in range(5000)]
    print("packed", len(packed), flush=True)
