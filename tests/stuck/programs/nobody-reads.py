#!/usr/bin/env python3
# state: the reader of its output waits for something else and does not read; the pipe is full
# before: output-blocked/pipe-full
# send: INT
# until: taken
# after: output-blocked/pipe-full
# useless: false
# rest: S
# cure: TERM
import os
import subprocess

reader = subprocess.Popen(["sleep", "600"], stdin=subprocess.PIPE)
print("name reader", reader.pid, flush=True)
print("ready", os.getpid(), flush=True)
os.dup2(reader.stdin.fileno(), 1)
os.dup2(reader.stdin.fileno(), 2)
while True:
    os.write(1, b"loss 0.1\n" * 500)
