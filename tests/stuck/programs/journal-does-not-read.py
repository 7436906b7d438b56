#!/usr/bin/env python3
# state: its output goes into a socket, as to a journal, and nobody reads there
# before: output-blocked
# send: INT
# until: taken
# after: output-blocked
# useless: false
# rest: S
# cure: TERM
import os
import signal
import socket

signal.signal(signal.SIGINT, lambda *_: None)
ours, theirs = socket.socketpair()
print("ready", os.getpid(), flush=True)
os.dup2(ours.fileno(), 1)
while True:
    os.write(1, b"loss 0.1\n" * 500)
