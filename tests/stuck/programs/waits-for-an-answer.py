#!/usr/bin/env python3
# state: it has left its work by the interrupt and asks a peer for something that never comes, without a limit of time
# send: INT
# until: says asking
# after: unexplained
# fair: shutdown-pending
# useless: false unknown
# cure: TERM
import os
import socket
import time

ours, theirs = socket.socketpair()
try:
    print("ready", os.getpid(), flush=True)
    while True:
        time.sleep(0.1)
except KeyboardInterrupt:
    print("asking", flush=True)
    ours.recv(1)
