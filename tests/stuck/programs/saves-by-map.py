#!/usr/bin/env python3
# state: since the interrupt it fills a mapped file: the state gets to the disk, though no write is called and the file has its full size
# send: INT
# until: says saving
# after: shutdown-progressing
# next: wait
# fair: shutdown-pending
# useless: false
# cure: KILL
import mmap
import os
import time

try:
    print("ready", os.getpid(), flush=True)
    while True:
        time.sleep(0.1)
except KeyboardInterrupt:
    with open("state.tmp", "w+b") as out:
        out.truncate(1 << 30)
        state = mmap.mmap(out.fileno(), 1 << 30)
        print("saving", flush=True)
        for place in range(0, 1 << 30, 1 << 18):
            state[place : place + 4096] = b"w" * 4096
            time.sleep(0.01)
