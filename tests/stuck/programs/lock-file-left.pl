#!/usr/bin/perl
# state: killed, it could not remove the file by which it keeps others out; the pid in it is dead
# send: KILL
# until: gone
# after: resource-held
# fair: stopped-dirty
# needs: perl
# cure: none
use strict; use warnings; use Fcntl; use IO::Handle;
$| = 1;
sysopen(my $lock, "$ENV{SCRATCH}/train.lock", O_CREAT | O_EXCL | O_WRONLY) or die;
$lock->autoflush(1);
print {$lock} "$$\n";
print "ready $$\n";
select(undef, undef, undef, 0.1) while 1;
