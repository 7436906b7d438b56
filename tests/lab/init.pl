# PID 1 of the lab's host and of its plain containers: it reaps orphans, and nothing else.
# Perl, because it is small, on every Debian, and also there in the container without a python3.
# The signal handler reaps at once; the sleep bounds the wait for a child that ended just before it.
$0 = join " ", "init", @ARGV;
$SIG{CHLD} = sub { 1 while waitpid(-1, 1) > 0 };
$SIG{PWR} = sub { exit 0 };
while (1) { sleep 1; 1 while waitpid(-1, 1) > 0 }
