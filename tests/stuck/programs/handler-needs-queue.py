#!/usr/bin/env python3
# state: the handler reports through a queue whose lock the interrupted code holds
# send: INT
# until: says handler
# after: deadlocked/handler
# next: signal
# useless: false
# rest: S
# cure: TERM
import os
import queue
import signal
import time


class Slow(queue.Queue):
    def _put(self, item):
        time.sleep(600)  # the queue's lock is held


def report(number, frame):
    os.write(1, b"handler entered\n")
    reports.put(number)


reports = Slow()
signal.signal(signal.SIGINT, report)
print("ready", os.getpid(), flush=True)
reports.put("step")
