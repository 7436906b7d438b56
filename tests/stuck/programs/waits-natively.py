#!/usr/bin/env python3
# state: the main thread waits in native code for a thread that computes natively, at one hundred percent
# send: INT
# until: taken
# after: handler-not-run
# next: wait signal
# useless: false
# cure: TERM
import ctypes
import hashlib
import os
import threading

libc = ctypes.CDLL("libpthread.so.0")
done = ctypes.create_string_buffer(64)
assert libc.pthread_barrier_init(done, None, 2) == 0
work = threading.Thread(target=hashlib.pbkdf2_hmac, args=("sha256", b"words", b"salt", 1 << 30), daemon=True)
work.start()
print("ready", os.getpid(), flush=True)
libc.pthread_barrier_wait(done)
