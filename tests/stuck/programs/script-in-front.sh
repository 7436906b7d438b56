#!/bin/sh
# state: a script with its program in the foreground; the script alone gets the signal, and keeps it until the program ends
# before: running wrapper-not-forwarding
# send: INT
# until: taken
# after: wrapper-not-forwarding/shell
# next: signal-child:worker
# useless: false
# needs: perl
# cure: TERM worker
perl -e '$| = 1; print "name worker $$\nready ", getppid(), "\n"; select(undef, undef, undef, 0.1) while 1'
echo "the end"
