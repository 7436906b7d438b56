#!/usr/bin/env python3
# state: in the background of its terminal it asks something of the user, and the kernel stops it (TTIN)
# before: suspended
# send: INT
# until: pending
# after: suspended
# next: cont signal
# useless: false
# rest: T
# cure: KILL
import fcntl
import os
import termios
import time

upper, lower = os.openpty()
shell = os.fork()
if not shell:
    os.setsid()
    fcntl.ioctl(lower, termios.TIOCSCTTY, 0)
    asker = os.fork()
    if not asker:
        os.setpgid(0, 0)
        try:
            print("ready", os.getpid(), flush=True)
            os.read(lower, 1)
        except KeyboardInterrupt:
            os._exit(0)
    while True:
        time.sleep(0.2)
os.waitpid(shell, 0)
