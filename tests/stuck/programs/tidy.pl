#!/usr/bin/perl
# state: a program that is no Python takes the interrupt, closes its file and leaves with 0
# send: INT
# until: gone
# after: stopped
# needs: perl
# cure: none
use strict; use warnings; use IO::Handle;
STDOUT->autoflush(1);
open(my $out, '>', "$ENV{SCRATCH}/steps") or die;
my $leave = 0;
$SIG{INT} = sub { $leave = 1 };
print "ready $$\n";
until ($leave) { print {$out} "step\n"; select(undef, undef, undef, 0.05); }
close($out);
exit 0;
