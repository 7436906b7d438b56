#!/bin/sh
# state: root's process, seen by a user
# before: no-permission
# send: INT
# until: taken
# after: no-permission
# look: nobody
# needs: root
# cure: KILL
trap : INT
echo "ready $$"
while :; do sleep 0.2; done
