#!/bin/sh
# state: a script whose program writes into a pipe to tee: the one to signal is the program, not tee
# before: running wrapper-not-forwarding
# send: INT
# until: taken
# after: wrapper-not-forwarding/shell
# next: signal-child:worker
# useless: false
# needs: perl
# cure: TERM worker
export shell=$$
perl -e '$| = 1; $0 = "train"; open(my $say, ">>", "said"); $say->autoflush(1); print {$say} "name worker $$\nready $ENV{shell}\n";
         while (1) { print "step\n"; select(undef, undef, undef, 0.1) }' | tee log >/dev/null
