#!/usr/bin/env python3
# state: it writes and syncs without a pause, so that many a look meets it in D; it gets on, and nothing is sent
# after: running
# cure: INT
import os

log = os.open(os.environ["SCRATCH"] + "/steps", os.O_CREAT | os.O_WRONLY)
print("ready", os.getpid(), flush=True)
while True:
    os.pwrite(log, os.urandom(4096), 0)
    os.fsync(log)
