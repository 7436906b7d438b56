#!/bin/sh
# state: a script waits for its program, and the program was stopped by somebody
# before: running wrapper-not-forwarding
# send: INT
# until: taken
# after: wrapper-not-forwarding/shell
# fair: waiting-for-child
# next: signal-child:worker cont
# useless: false
# needs: perl
# cure: KILL worker
perl -e '$| = 1; print "name worker $$\nready ", getppid(), "\n"; kill "STOP", $$; sleep 600'
echo "the end"
