#!/usr/bin/env python3
# state: since the interrupt it waits for a child that writes the archive: the tree gets on, though the process itself stands still
# send: INT
# until: says archiving
# after: shutdown-progressing
# fair: waiting-for-child
# next: wait signal-child
# useless: false
# cure: KILL
import os
import subprocess
import sys
import time

PACK = "import time\nwith open('archive.part', 'wb', 0) as out:\n    while out.write(bytes(60_000)):\n        time.sleep(0.02)"
try:
    print("ready", os.getpid(), flush=True)
    while True:
        time.sleep(0.1)
except KeyboardInterrupt:
    packer = subprocess.Popen([sys.executable, "-c", PACK], start_new_session=True)
    print("archiving", flush=True)
    packer.wait()
