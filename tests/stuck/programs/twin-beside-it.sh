#!/bin/sh
# state: it has ended; a run with the same command line, directory and session was there before it, and has nothing to do with it
# send: TERM
# until: gone
# after: stopped
# needs: perl
# cure: none
code='$SIG{TERM} = sub { exit 0 }; open(my $out, ">", "pid.$$"); select(undef, undef, undef, 0.1) while 1'
perl -e "$code" &
while [ ! -e "pid.$!" ]; do sleep 0.05; done
sleep 0.1 # two ticks of the clock of start times, and more
perl -e "$code" &
while [ ! -e "pid.$!" ]; do sleep 0.05; done
echo "ready $!"
wait
