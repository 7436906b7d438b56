#!/bin/sh
# state: somebody stopped it to make room
# before: suspended
# send: TERM
# until: pending
# after: suspended
# next: cont signal
# useless: false
# rest: T
# needs: perl
# cure: CONT
perl -e 'sleep 600' &
echo "ready $!"
kill -STOP $!
wait
