#!/usr/bin/env python3
# state: it leaves by the interrupt and waits for a tool that ignores it
# send: INT
# until: says waiting
# after: waiting-for-child/child-ignores
# next: signal-child signal
# useless: false
# rest: S
# cure: TERM child
import os
import subprocess
import time

tool = subprocess.Popen(["sh", "-c", "trap '' INT; while :; do sleep 0.2; done"])
print("name child", tool.pid, flush=True)
try:
    print("ready", os.getpid(), flush=True)
    while True:
        time.sleep(0.1)
finally:
    print("waiting for the tool", flush=True)
    tool.wait()
