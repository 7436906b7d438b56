#!/usr/bin/env python3
# state: its parent has gone, and the first process of the container collects nobody
# send: INT
# until: state Z
# after: zombie
# next: restart-container
# useless: true
# look: inside
# needs: root
# cure: none
import os
import time

import _space

outside = _space.enter()
middle = os.fork()
if not middle:
    if not os.fork():
        while os.getppid() != 1:
            time.sleep(0.01)
        try:
            _space.ready(outside, "inside")
            while True:
                time.sleep(0.1)
        except KeyboardInterrupt:
            os._exit(0)
    os._exit(0)
os.waitpid(middle, 0)
while True:
    time.sleep(1)
