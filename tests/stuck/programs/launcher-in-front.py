#!/usr/bin/env python3
# state: a launcher that has a handler for the interrupt, and passes nothing on to what it launched
# before: running wrapper-not-forwarding
# send: INT
# until: says noted
# after: wrapper-not-forwarding
# next: signal-child:worker
# useless: false
# cure: INT worker
import os
import signal
import subprocess
import sys

TRAIN = "import time\nwhile True:\n    time.sleep(0.1)"
signal.signal(signal.SIGINT, lambda *_: os.write(1, b"noted\n"))
worker = subprocess.Popen([sys.executable, "-c", TRAIN])
print("name worker", worker.pid, flush=True)
print("ready", os.getpid(), flush=True)
worker.wait()
