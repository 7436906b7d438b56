#!/usr/bin/env python3
# state: the main thread blocks INT and sleeps; the kernel gives it to a worker, and Python's handler waits for the main thread
# send: INT
# until: taken
# after: handler-not-run/native-blocked
# rest: S
# cure: TERM
import os
import signal
import threading
import time

threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
print("ready", os.getpid(), flush=True)
time.sleep(600)
