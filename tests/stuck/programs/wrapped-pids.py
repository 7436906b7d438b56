#!/usr/bin/env python3
# state: it ends on the interrupt, and in its small pid namespace a stranger gets its pid
# send: INT
# until: says reused
# after: pid-reused/started-later
# look: inside
# needs: root
# cure: none
import os
import time

import _space

outside = _space.enter()
trainer = os.fork()
if not trainer:
    try:
        _space.ready(outside, "inside")
        time.sleep(600)
    except KeyboardInterrupt:
        os._exit(0)
os.waitpid(trainer, 0)
while True:
    with open("/proc/sys/kernel/ns_last_pid", "w") as last:
        last.write(str(trainer - 1))
    stranger = os.fork()
    if not stranger:
        os.execv("/bin/sleep", ["sleep", "600"])
    if stranger == trainer:
        break
    os.kill(stranger, 9)
    os.waitpid(stranger, 0)
print("reused", stranger, flush=True)
while True:
    os.wait()
