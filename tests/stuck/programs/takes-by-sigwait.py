#!/usr/bin/env python3
# state: every thread blocks INT, and one waits for it in sigwait: it is taken, and the state is saved
# send: INT
# until: says saving
# after: shutdown-progressing/writing
# next: wait
# useless: false
# cure: KILL
import os
import signal
import threading
import time

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
asked = threading.Event()


def listen():
    signal.sigwait([signal.SIGINT])
    asked.set()


threading.Thread(target=listen, daemon=True).start()
print("ready", os.getpid(), flush=True)
while not asked.wait(0.1):
    pass
print("saving", flush=True)
with open("state.tmp", "wb") as out:
    for _ in range(3000):
        out.write(bytes(50_000))
        out.flush()
        time.sleep(0.02)
