#!/usr/bin/env python3
# state: the main thread is in one long native call, which computes with the interpreter's lock released
# send: INT
# until: taken
# after: handler-not-run/native-busy
# next: wait signal
# useless: false
# rest: R
# cure: TERM
import hashlib
import os

print("ready", os.getpid(), flush=True)
hashlib.pbkdf2_hmac("sha256", b"words", b"salt", 1 << 30)
