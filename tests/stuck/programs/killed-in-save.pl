#!/usr/bin/perl
# state: KILL while it writes model.part
# send: KILL
# until: gone
# after: stopped-dirty/killed
# needs: perl
# cure: none
use strict; use warnings; use IO::Handle;
STDOUT->autoflush(1);
open(my $out, '>', "$ENV{SCRATCH}/model.part") or die;
$out->autoflush(1);
print "ready $$\n";
while (1) { print {$out} "w" x 4096; select(undef, undef, undef, 0.02); }
