#!/usr/bin/perl
# state: the program chose to ignore TERM; INT would work
# before: running signal-ignored
# send: TERM
# until: taken
# after: signal-ignored/own
# next: signal
# needs: perl
# cure: INT
use strict; use warnings;
$| = 1;
$SIG{TERM} = 'IGNORE';
$SIG{INT} = sub { exit 0 };
print "ready $$\n";
sleep 1 while 1;
