#!/usr/bin/env python3
# state: its log lies on a remote file system that does not answer any more: it dies, and hangs in closing that file
# send: INT
# until: state D
# after: exiting-stuck/close
# next: fix-filesystem
# useless: true
# needs: fuse
# cure: KILL daemon
import os
import signal
import time

import _silent

log = os.open(_silent.mount(_silent.FLUSH) + "/file", os.O_WRONLY)
signal.signal(signal.SIGINT, signal.SIG_DFL)
print("ready", os.getpid(), flush=True)
while True:
    time.sleep(0.2)
