#!/usr/bin/env python3
# state: no handler for TERM: the kernel ends it at once, its `finally` is not run
# send: TERM
# until: gone
# after: stopped/default-action
# cure: none
import os
import time

try:
    print("ready", os.getpid(), flush=True)
    time.sleep(600)
finally:
    print("finally", flush=True)
