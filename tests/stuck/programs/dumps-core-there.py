#!/usr/bin/env python3
# state: it dumps core into its directory, which lies on a remote file system that takes no byte
# send: QUIT
# until: dumping
# after: exiting-stuck
# useless: true
# needs: fuse core
# cure: KILL daemon
import os
import resource
import time

import _silent

place = _silent.mount(_silent.WRITE)
resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
os.chdir(place)
print("ready", os.getpid(), flush=True)
while True:
    time.sleep(0.2)
