#!/usr/bin/perl
# state: the parent goes on working and never asks for its child's status
# send: INT
# until: state Z
# after: zombie
# useless: true
# needs: perl
# cure: none
use strict; use warnings;
$| = 1;
my $child = fork();
if (!$child) { exec 'sleep', '600' }
print "name parent $$\nready $child\n";
select(undef, undef, undef, 0.1) while 1;
