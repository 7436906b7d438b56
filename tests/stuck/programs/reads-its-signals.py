#!/usr/bin/env python3
# state: INT is blocked and comes through a signalfd, as in many an event loop: it ends in good order
# send: INT
# until: gone
# after: stopped
# cure: none
import ctypes
import os
import signal

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
mask = (ctypes.c_ulong * 16)(1 << signal.SIGINT - 1)
signals = ctypes.CDLL(None).signalfd(-1, mask, 0)
print("ready", os.getpid(), flush=True)
os.read(signals, 128)
