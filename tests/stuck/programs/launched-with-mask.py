#!/usr/bin/env python3
# state: a launcher left INT and TERM in the mask, which exec hands on to a program that knows nothing of it
# before: running signal-blocked
# send: INT
# until: pending
# after: signal-blocked
# useless: false
# needs: perl
# cure: KILL
import os
import signal

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM])
os.execv("/usr/bin/perl", ["perl", "-e", '$| = 1; $SIG{INT} = sub { exit 0 }; print "ready $$\\n"; sleep 1 while 1'])
