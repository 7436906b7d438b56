#!/usr/bin/env python3
# state: a debugger seized it, interrupted it, and looks at it
# before: traced/tracing-stop
# send: INT
# until: pending
# after: traced/tracing-stop
# next: end-tracer
# useless: false
# rest: t
# needs: ptrace
# cure: KILL tracer, INT, CONT
import ctypes
import os
import time

SEIZE, INTERRUPT = 0x4206, 0x4207
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
    assert libc.ptrace(SEIZE, target, None, None) == 0
    assert libc.ptrace(INTERRUPT, target, None, None) == 0
    os.waitpid(target, 0x40000000)
    print("name tracer", os.getpid(), flush=True)
    print("ready", target, flush=True)
    time.sleep(600)
os.waitpid(tracer, 0)
os.waitpid(target, 0)
