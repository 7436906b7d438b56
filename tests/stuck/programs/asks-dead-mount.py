#!/usr/bin/env python3
# state: it asks for a file of a remote file system whose daemon has read the request; the signal itself turns S into D
# before: running uninterruptible unexplained
# send: INT
# until: state D
# after: uninterruptible/io
# next: fix-filesystem
# needs: fuse
# cure: KILL daemon
import os
import signal

import _silent

place = _silent.mount(_silent.LOOKUP)
signal.signal(signal.SIGINT, lambda *_: os._exit(0))
print("ready", os.getpid(), flush=True)
os.stat(place + "/dataset")
