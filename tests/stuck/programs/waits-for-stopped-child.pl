#!/usr/bin/perl
# state: it leaves by the interrupt and waits for a child that somebody stopped
# send: INT
# until: says waiting
# after: waiting-for-child
# useless: false
# needs: perl
# cure: KILL child
use strict; use warnings;
$| = 1;
my $child = fork();
if (!$child) { exec 'sleep', '600' }
kill 'STOP', $child;
my $stop = 0;
$SIG{INT} = sub { $stop = 1 };
print "name child $child\nready $$\n";
select(undef, undef, undef, 0.05) until $stop;
print "waiting\n";
waitpid($child, 0);
