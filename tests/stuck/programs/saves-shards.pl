#!/usr/bin/perl
# state: on the interrupt it writes shard after shard, then leaves
# send: INT
# until: says saving
# after: shutdown-progressing/writing
# next: wait
# useless: false
# needs: perl
# cure: KILL
use strict; use warnings; use IO::Handle;
$| = 1;
my $stop = 0;
$SIG{INT} = sub { $stop = 1 };
print "ready $$\n";
select(undef, undef, undef, 0.05) until $stop;
print "saving\n";
for my $shard (1 .. 100) {
    open(my $out, '>', "$ENV{SCRATCH}/shard-$shard.tmp") or die;
    $out->autoflush(1);
    for (1 .. 20) { print {$out} "w" x 65536; select(undef, undef, undef, 0.02); }
    close($out);
    rename "$ENV{SCRATCH}/shard-$shard.tmp", "$ENV{SCRATCH}/shard-" . $shard % 2;
}
