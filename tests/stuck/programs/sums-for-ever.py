#!/usr/bin/env python3
# state: a loop inside the interpreter's own C code, with its lock held: no line of Python is run any more
# send: INT
# until: taken
# after: handler-not-run/native-busy
# fair: shutdown-pending
# rest: R
# cure: TERM
import collections
import itertools
import os

print("ready", os.getpid(), flush=True)
collections.deque(itertools.repeat(0), maxlen=0)
