#!/usr/bin/env python3
# state: it starts a program that lies on a remote file system without an answer: the parent waits for the exec of its child
# before: uninterruptible/vfork waiting-for-child
# send: INT
# until: pending
# after: uninterruptible/vfork
# fair: waiting-for-child
# rest: D
# needs: fuse
# cure: KILL daemon
import os
import subprocess

import _silent

place = _silent.mount(_silent.LOOKUP)
print("ready", os.getpid(), flush=True)
subprocess.Popen([place + "/tool"]).wait()
