#!/bin/sh
# state: it has gone, and a bystander that was started with its locked file open keeps the lock
# send: TERM
# until: gone
# after: resource-held
# needs: perl
# cure: none
exec 9>run.lock
flock -n 9 || exit 1
sleep 600 &
perl -e '$| = 1; print "ready $$\n"; select(undef, undef, undef, 0.1) while 1' &
exec 9>&-
wait
