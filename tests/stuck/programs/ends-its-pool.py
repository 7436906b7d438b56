#!/usr/bin/env python3
# state: three forked workers, which the parent ends and collects before it leaves: nobody is left
# send: INT
# until: gone
# after: stopped
# cure: none
import multiprocessing
import os
import signal
import time


def work():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        time.sleep(0.2)


if __name__ == "__main__":
    workers = [multiprocessing.get_context("fork").Process(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    try:
        print("ready", os.getpid(), flush=True)
        while True:
            time.sleep(0.2)
    except KeyboardInterrupt:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.join()
