#!/usr/bin/env python3
# state: a rank waits in a native barrier for another that never comes, as in a collective
# send: INT
# until: taken
# after: handler-not-run/native-blocked
# next: wait signal
# useless: false
# rest: S
# cure: TERM
import ctypes
import os

libc = ctypes.CDLL("libpthread.so.0")
barrier = ctypes.create_string_buffer(64)
assert libc.pthread_barrier_init(barrier, None, 2) == 0
print("ready", os.getpid(), flush=True)
libc.pthread_barrier_wait(barrier)
