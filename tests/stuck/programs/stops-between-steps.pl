#!/usr/bin/perl
# state: the handler sets a flag, which is looked at between two steps of computing
# send: INT
# until: says later
# after: shutdown-pending
# next: wait
# useless: false
# rest: R
# needs: perl
# cure: KILL
use strict; use warnings;
$| = 1;
my $stop = 0;
$SIG{INT} = sub { $stop = 1; print "later\n" };
print "ready $$\n";
until ($stop) { my $end = time + 60; my $n = 0; $n++ while time < $end; }
