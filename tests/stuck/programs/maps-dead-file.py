#!/usr/bin/env python3
# state: it touches a page of a mapped remote file that never comes; this wait in D is one that KILL ends
# before: uninterruptible/io
# send: INT
# until: pending
# after: uninterruptible/io
# rest: D
# needs: fuse
# cure: KILL
import mmap
import os

import _silent

with open(_silent.mount(_silent.READ) + "/file", "rb") as file:
    tokens = mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ)
print("ready", os.getpid(), flush=True)
print(tokens[0], flush=True)
