#!/usr/bin/env python3
# state: the group above its own is frozen (cgroup v2): its own cgroup.freeze says 0, and the state letter is S
# before: frozen/cgroup-v2
# send: INT
# until: pending
# after: frozen/cgroup-v2
# next: thaw
# useless: false
# needs: cgroup2
# cure: undo
import os
import time

import _group

upper = _group.make("unified")
lower = _group.make("unified", below=upper)
worker = os.fork()
if not worker:
    _group.put(lower, "cgroup.procs", os.getpid())
    try:
        while True:
            time.sleep(0.05)
    except KeyboardInterrupt:
        os._exit(0)
print("undo", upper + "/cgroup.freeze", "0", flush=True)
while str(worker) not in _group.get(lower, "cgroup.procs").split():
    time.sleep(0.01)
_group.put(upper, "cgroup.freeze", 1)
while "frozen 1" not in _group.get(lower, "cgroup.events"):
    time.sleep(0.01)
print("ready", worker, flush=True)
os.waitpid(worker, 0)
