#!/usr/bin/env python3
# state: two threads hold one native lock each and wait for the other's, the main one among them
# before: running deadlocked
# send: INT
# until: taken
# after: deadlocked
# fair: handler-not-run
# useless: false
# rest: S
# cure: TERM
import ctypes
import os
import threading

libc = ctypes.CDLL("libpthread.so.0")
data, model = ctypes.create_string_buffer(64), ctypes.create_string_buffer(64)
both = threading.Barrier(2)


def take(first, second):
    libc.pthread_mutex_lock(first)
    both.wait()
    libc.pthread_mutex_lock(second)


threading.Thread(target=take, args=(data, model), daemon=True).start()
print("ready", os.getpid(), flush=True)
take(model, data)
