#!/bin/sh
# state: a script started it with `&`, so that it has ignored INT since its start
# before: running signal-ignored
# send: INT
# until: taken
# after: signal-ignored/inherited
# next: signal
# useless: false
# needs: perl
# cure: TERM
perl -e '$| = 1; print "ready $$\n"; sleep 1 while 1' &
wait
