#!/usr/bin/env python3
# state: the process of another user, seen by a root that may not signal it (as in a container without that capability)
# before: no-permission
# send: INT
# until: taken
# after: no-permission
# look: weak
# needs: root
# cure: KILL
import os
import signal
import time

os.setgroups([])
os.setgid(65534)
os.setuid(65534)
signal.signal(signal.SIGINT, lambda *_: None)
print("ready", os.getpid(), flush=True)
while True:
    time.sleep(0.2)
