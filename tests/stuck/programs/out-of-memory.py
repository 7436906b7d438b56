#!/usr/bin/env python3
# state: on the interrupt it gathers its state for the checkpoint, exceeds the memory of its group, and the kernel kills it
# send: INT
# until: gone
# after: stopped-dirty/oom
# needs: memory
# cure: none
import os
import time

import _group

group = _group.make("memory")
_group.put(group, "memory.limit_in_bytes", 48 << 20)
saver = os.fork()
if not saver:
    _group.put(group, "cgroup.procs", os.getpid())
    try:
        print("ready", os.getpid(), flush=True)
        while True:
            time.sleep(0.1)
    except KeyboardInterrupt:
        shards = [os.urandom(1 << 20) for _ in range(400)]
        print("saved", len(shards), flush=True)
        os._exit(0)
os.waitpid(saver, 0)
time.sleep(600)
