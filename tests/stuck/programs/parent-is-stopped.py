#!/usr/bin/env python3
# state: the parent would collect it, but somebody stopped the parent
# send: INT
# until: state Z
# after: zombie
# cure: none
import os
import signal
import time

child = os.fork()
if child:
    print("name parent", os.getpid(), flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
    os.waitpid(child, 0)
else:
    try:
        print("ready", os.getpid(), flush=True)
        while True:
            time.sleep(0.1)
    except KeyboardInterrupt:
        os._exit(0)
