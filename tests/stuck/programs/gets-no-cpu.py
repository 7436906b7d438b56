#!/usr/bin/env python3
# state: its group may use one millisecond a second, and others in the group use it up: the signal waits for the CPU
# send: INT
# until: pending
# after: shutdown-pending/cpu-starved
# useless: false
# rest: R
# needs: cpu
# cure: undo, KILL
import os
import time

import _group

SHARERS = 8
group = _group.make("cpu")
print("undo", group + "/cpu.cfs_quota_us", "-1", flush=True)
_group.put(group, "cpu.cfs_period_us", 1000000)
_group.put(group, "cpu.cfs_quota_us", 1000)
for _ in range(SHARERS):
    if not os.fork():
        os.nice(-20)
        _group.put(group, "cgroup.procs", os.getpid())
        while True:
            pass
trainer = os.fork()
if not trainer:
    _group.put(group, "cgroup.procs", os.getpid())
    try:
        while True:
            pass
    except KeyboardInterrupt:
        os._exit(0)
while len(_group.get(group, "cgroup.procs").split()) <= SHARERS:
    time.sleep(0.01)
os.setpriority(os.PRIO_PROCESS, trainer, 19)
throttled = int(_group.get(group, "cpu.stat").split()[3])
while int(_group.get(group, "cpu.stat").split()[3]) < throttled + 2:
    time.sleep(0.05)
print("ready", trainer, flush=True)
os.waitpid(trainer, 0)
