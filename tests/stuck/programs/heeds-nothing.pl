#!/usr/bin/perl
# state: a handler that does nothing, in a program that is no Python, under a name that looks like a line of stat
# send: INT
# until: says heard
# after: signal-swallowed
# fair: shutdown-pending
# useless: false
# needs: perl
# cure: TERM
use strict; use warnings;
$| = 1;
$0 = ") Z 1 1 (train";
$SIG{INT} = sub { print "heard INT\n" };
print "ready $$\n";
select(undef, undef, undef, 0.05) while 1;
