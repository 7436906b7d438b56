#!/usr/bin/perl
# state: it dies of TERM, which it does not handle, and its two forked loaders live on in its session
# send: TERM
# until: gone
# after: children-survive/same-session
# needs: perl
# cure: none
use strict; use warnings;
$| = 1;
for (1 .. 2) {
    if (!fork()) { select(undef, undef, undef, 0.1) while 1 }
}
print "ready $$\n";
select(undef, undef, undef, 0.1) while 1;
