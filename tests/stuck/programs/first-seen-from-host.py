#!/usr/bin/env python3
# state: the first process of a pid namespace, without a handler for TERM, seen from outside, where KILL works
# before: running signal-ignored
# send: TERM
# until: taken
# after: signal-ignored/pid1
# useless: false
# needs: root
# cure: KILL
import time

import _space

_space.ready(_space.enter(), "outside")
while True:
    time.sleep(0.2)
