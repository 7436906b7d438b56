#!/usr/bin/env python3
# state: the handler waits for its peer to say goodbye, for twenty seconds at most, and then leaves
# send: INT
# until: says waiting
# after: shutdown-pending/handler
# fair: unexplained
# next: wait
# useless: false
# cure: KILL
import os
import signal
import socket
import time

ours, theirs = socket.socketpair()


def leave(number, frame):
    os.write(1, b"waiting for the peer\n")
    ours.settimeout(20)
    try:
        ours.recv(1)
    except TimeoutError:
        pass
    os._exit(0)


signal.signal(signal.SIGINT, leave)
print("ready", os.getpid(), flush=True)
while True:
    time.sleep(0.1)
