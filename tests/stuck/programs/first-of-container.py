#!/usr/bin/env python3
# state: the first process of its pid namespace, without a handler for TERM, seen from inside, where even KILL is dropped
# before: running signal-ignored
# send: TERM
# until: taken
# after: signal-ignored/pid1
# useless: true
# look: inside
# needs: root
# cure: KILL
import time

import _space

_space.ready(_space.enter(), "inside")
while True:
    time.sleep(0.2)
