#!/usr/bin/env python3
# state: an agent leaves by the interrupt, and its ranks, in sessions of their own, train on
# send: INT
# until: gone
# after: children-survive/own-session
# cure: none
import os
import subprocess
import sys
import time

RANK = "import time\nwhile True:\n    time.sleep(0.1)"
for rank in range(2):
    subprocess.Popen([sys.executable, "-c", RANK], start_new_session=True, env={**os.environ, "RANK": str(rank)})
try:
    print("ready", os.getpid(), flush=True)
    while True:
        time.sleep(0.1)
except KeyboardInterrupt:
    os._exit(1)
