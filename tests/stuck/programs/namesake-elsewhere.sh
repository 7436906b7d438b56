#!/bin/sh
# state: it has ended, and a run that began meanwhile in another directory has, word for word, the same command line
# send: TERM
# until: says other
# after: stopped
# needs: perl
# cure: none
code='$| = 1; $SIG{TERM} = sub { exit 0 }; open(my $say, "<", "word"); print <$say>, " $$\n"; select(undef, undef, undef, 0.1) while 1'
mkdir ours theirs
printf ready >ours/word
printf other >theirs/word
(cd ours && exec perl -e "$code") &
wait
(cd theirs && exec perl -e "$code") &
wait
