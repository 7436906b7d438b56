#!/usr/bin/env python3
# state: a tracer lets it run, and takes every interrupt that is meant for it
# before: traced running
# send: INT
# until: says eaten
# after: traced/runs
# next: end-tracer
# needs: ptrace
# cure: KILL tracer, INT
import ctypes
import os
import time

SEIZE, CONTINUE = 0x4206, 7
target = os.fork()
if not target:
    try:
        while True:
            time.sleep(0.1)
    except KeyboardInterrupt:
        os._exit(0)
tracer = os.fork()
if not tracer:
    libc = ctypes.CDLL(None)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    assert libc.ptrace(SEIZE, target, None, None) == 0
    print("name tracer", os.getpid(), flush=True)
    print("ready", target, flush=True)
    while True:
        _, status = os.waitpid(target, 0x40000000)
        libc.ptrace(CONTINUE, target, None, None)
        print("eaten", os.WSTOPSIG(status), flush=True)
os.waitpid(tracer, 0)
os.waitpid(target, 0)
