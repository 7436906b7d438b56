#!/usr/bin/env python3
# state: it has gone, and a bystander who was given its listening socket keeps the port
# send: INT
# until: gone
# after: resource-held/port
# cure: none
import os
import socket
import subprocess
import time

server = socket.create_server(("127.0.0.1", 0))
subprocess.Popen(["sleep", "600"], pass_fds=[server.fileno()])
trainer = os.fork()
if not trainer:
    try:
        print("ready", os.getpid(), flush=True)
        while True:
            time.sleep(0.1)
    except KeyboardInterrupt:
        os._exit(0)
server.close()
os.waitpid(trainer, 0)
time.sleep(600)
