#!/usr/bin/env python3
# state: the main code has left by the interrupt; the interpreter waits for a worker of a thread pool that listens for ever
# send: INT
# until: says leaving
# after: exit-blocked/threads
# next: signal
# useless: false
# rest: S
# cure: INT
import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor

server = socket.create_server(("127.0.0.1", 0))
pool = ThreadPoolExecutor(2)
pool.submit(server.accept)
try:
    print("ready", os.getpid(), flush=True)
    while True:
        time.sleep(0.1)
finally:
    print("leaving", flush=True)
