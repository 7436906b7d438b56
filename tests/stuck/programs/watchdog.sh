#!/bin/sh
# state: a watchdog that is not its parent looks at a pid file and starts it again
# send: TERM
# until: says again
# after: respawned
# needs: perl
# cure: none
cat >train.pl <<'PERL'
$| = 1; open(my $out, '>', 'pid.new') or die; print {$out} $$; close($out);
my $word = -e 'pid' ? 'again' : 'ready'; rename 'pid.new', 'pid'; print "$word $$\n";
select(undef, undef, undef, 0.1) while 1;
PERL
perl train.pl &
(
    while [ ! -s pid ]; do sleep 0.1; done
    while kill -0 "$(cat pid)" 2>/dev/null; do sleep 0.1; done
    setsid perl train.pl &
    wait
) &
wait
