#!/usr/bin/env python3
# state: frozen by cgroup v1 in the middle of its computing; the state letter is D, and no file system is at fault
# before: frozen/cgroup-v1
# send: INT
# until: pending
# after: frozen/cgroup-v1
# next: thaw
# rest: D
# needs: freezer
# cure: undo
import os
import time

import _group

group = _group.make("freezer")
worker = os.fork()
if not worker:
    _group.put(group, "cgroup.procs", os.getpid())
    print("in", flush=True)
    try:
        while True:
            sum(range(1000))
    except KeyboardInterrupt:
        os._exit(0)
print("undo", group + "/freezer.state", "THAWED", flush=True)
while str(worker) not in _group.get(group, "cgroup.procs").split():
    time.sleep(0.01)
while "FROZEN" not in _group.get(group, "freezer.state"):
    _group.put(group, "freezer.state", "FROZEN")
print("ready", worker, flush=True)
os.waitpid(worker, 0)
