#!/usr/bin/env python3
# state: a program with a handler for TERM and TERM blocked in all of its threads
# before: running signal-blocked
# send: TERM
# until: pending
# after: signal-blocked
# cure: INT
import os
import signal
import threading
import time

signal.signal(signal.SIGTERM, lambda *_: os.write(1, b"never\n"))
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
for _ in range(3):
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
try:
    print("ready", os.getpid(), flush=True)
    while True:
        time.sleep(0.2)
except KeyboardInterrupt:
    os._exit(0)
