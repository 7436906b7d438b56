#!/usr/bin/env python3
# state: a supervisor starts it again as soon as it has ended
# send: INT
# until: says again
# after: respawned/same-parent
# cure: none
import subprocess
import sys

TRAIN = "import time\nwhile True:\n    time.sleep(0.1)"
words = ["ready"]
while True:
    trainer = subprocess.Popen([sys.executable, "-c", TRAIN, "--lr", "0.1"], stderr=subprocess.DEVNULL)
    print(words.pop() if words else "again", trainer.pid, flush=True)
    trainer.wait()
