#!/usr/bin/env python3
# state: a user's process that may not be read even by that user (not dumpable): where it waits, what it writes, what it has open
# send: INT
# until: taken
# after: unexplained
# fair: shutdown-pending
# useless: false unknown
# look: nobody
# needs: root
# cure: TERM
import ctypes
import os
import select
import signal

NOT_DUMPABLE = 4
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
ctypes.CDLL(None).prctl(NOT_DUMPABLE, 0)
signal.signal(signal.SIGINT, lambda *_: None)
print("ready", os.getpid(), flush=True)
while True:
    select.select([], [], [])
