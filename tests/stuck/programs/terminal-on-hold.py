#!/usr/bin/env python3
# state: its terminal is on hold (Ctrl-S), and each print waits
# before: output-blocked
# send: INT
# until: taken
# after: output-blocked
# useless: false
# rest: S
# cure: TERM
import os
import signal
import termios

upper, lower = os.openpty()
termios.tcflow(lower, termios.TCOOFF)
signal.signal(signal.SIGINT, lambda *_: None)
print("ready", os.getpid(), flush=True)
while True:
    os.write(lower, b"loss 0.1\n")
