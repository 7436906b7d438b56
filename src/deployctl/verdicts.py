"""Every verdict of the agent: one line for a person, and what to do. The agent's words come in, sentences go out."""

from __future__ import annotations

from typing import NamedTuple


class Said(NamedTuple):
    """A verdict in words: what is the case, and what to do."""

    line: str
    advice: str


VERDICTS: dict[str, Said] = {
    "running": Said("the process works as usual, and nothing is known to have been sent to it", "nothing"),
    "stopped": Said("the process ended and nothing of it is left", "nothing; the new one can start"),
    "stopped-dirty": Said(
        "the process is gone, but it was killed before it had finished",
        "do not trust the newest checkpoint: look for half-written files and resume from the one before",
    ),
    "signal-ignored": Said(
        "the process ignores this signal, so waiting would be in vain",
        "use a signal that it handles, and mend what makes it ignore this one",
    ),
    "signal-blocked": Said(
        "the signal stays queued, since every thread of the process blocks it",
        "use another signal, and mend what starts it with that mask",
    ),
    "pid-reused": Said(
        "the pid belongs to another process now; nothing was signalled", "take yours as ended, and remove the stale pid file"
    ),
    "exiting-stuck": Said(
        "the process is dying, but the kernel cannot finish it (an open file, a driver, a core dump)",
        "free the file system or the driver that it waits for, else reboot the container or its host",
    ),
    "frozen": Said(
        "the control group of the process is frozen (a suspend, a backup, a pause)", "thaw it; signals that are queued act then"
    ),
    "handler-not-run": Said(
        "the signal has arrived, but the interpreter cannot run its handler: the main thread is inside native code",
        "wait for that call to end, or send TERM, which ends it without a cleanup where TERM has no handler",
    ),
    "signal-swallowed": Said(
        "the signal has arrived, and the program went on",
        "send the next signal, and look for a bare `except:` in the program or a lost exception in its log",
    ),
    "deadlocked": Said("its threads, or its signal handler, wait for each other", "it will not finish: TERM, else KILL"),
    "exit-blocked": Said("the program has ended and waits for its threads or its exit hooks", "one more INT, then TERM"),
    "shutdown-progressing": Said("it is shutting down, and visibly works", "keep waiting"),
    "shutdown-pending": Said(
        "it took the signal and should stop at its next safe point", "wait one step; where it gets no CPU, raise its limit"
    ),
    "waiting-for-child": Said("it is stopping, and waits for a child", "look at the child: it is named below"),
    "wrapper-not-forwarding": Said(
        "this process is a wrapper: its child does the work and got no signal",
        "send the signal to the child, and record that pid in future",
    ),
    "respawned": Said("it stopped, and something has started it again", "stop what starts it first, then the new process"),
    "output-blocked": Said("it cannot print: its output is full and nobody reads", "wake or restart the reader (tee, a logger)"),
    "resource-held": Said(
        "it is gone, but something of it is still taken: a port, a lock, memory of a GPU",
        "wait, or end the holder that is named; remove a stale lock",
    ),
    "no-permission": Said("the process belongs to another user, so the signal was refused", "run deployctl as that user or as root"),
    "zombie": Said("the process is dead; its parent has not collected it yet", "take it as stopped, and look after its parent"),
    "suspended": Said(
        "the process is stopped by a signal (Ctrl-Z, SIGSTOP) and cannot react", "find out who stopped it, then let it go on: kill -CONT"
    ),
    "traced": Said("a debugger or tracer holds the process or takes its signals", "end the tracer, then let the process go on: kill -CONT"),
    "uninterruptible": Said(
        "the process waits inside the kernel, where a signal that it handles does not reach it",
        "repair what it waits for (file system, network mount, driver); KILL may or may not work",
    ),
    "children-survive": Said(
        "the main process is gone, but processes that it started still run", "end them one by one; they may hold the GPU or a port"
    ),
    "unexplained": Said(
        "the process is still there, and what was seen fits no known cause", "read the evidence; KILL would lose its unsaved work"
    ),
}
# What is better said for one detail of a verdict.
DETAILS: dict[tuple[str, str], Said] = {
    ("stopped", "default-action"): Said(
        "the process ended at once: it has no handler for this signal, so nothing of its own was run",
        "check that its last checkpoint is whole",
    ),
    ("stopped", "by-itself"): Said("the process ended by itself before a signal was sent", "look into its log for the reason"),
    ("stopped-dirty", "crashed"): Said(
        "the process crashed while it was stopping", "do not trust the newest checkpoint, and look into the log for the crash"
    ),
    ("signal-ignored", "inherited"): Said(
        "the process was started so that it ignores this signal (a shell's '&' or nohup does that), so waiting would be in vain",
        "use TERM for this one; a launch by deployctl resets all signals",
    ),
    ("signal-ignored", "own"): Said("the program itself chose to ignore this signal", "use a signal that it handles"),
    ("signal-ignored", "pid1"): Said(
        "the process is the first one of its container and has no handler for this signal, so the kernel drops it",
        "use a signal that it handles, or stop the container from its host",
    ),
    ("uninterruptible", "vfork"): Said(
        "the process waits for a child that it has just forked and that does not start its program", "look at the child; KILL works"
    ),
    ("traced", "runs"): Said("a tracer is attached, which may take the signals of the process", "end the tracer and try again"),
    ("children-survive", "own-session"): Said(
        "the main process is gone, but processes that it started run on in sessions of their own",
        "end them one by one; they may hold the GPU or a port",
    ),
    ("handler-not-run", "native-busy"): Said(
        "the signal has arrived, but the interpreter cannot run its handler: the main thread computes inside native code",
        "wait for that call to end (a long kernel and an endless one look the same), or send TERM",
    ),
    ("deadlocked", "handler"): Said(
        "its signal handler waits for a lock which the code that it interrupted holds",
        "it will not finish: TERM where that has no handler, else KILL",
    ),
    ("shutdown-pending", "cpu-starved"): Said(
        "the signal waits, since the process gets no time on a CPU", "raise the CPU limit of its control group; the signal acts then"
    ),
    ("stopped-dirty", "oom"): Said(
        "the process was killed by the kernel, since its control group was out of memory",
        "do not trust the newest checkpoint; raise the memory limit before the next start",
    ),
    ("pid-reused", "stale-pid-file"): Said(
        "a pid file names this process, but is older than it: the file means another one", "signal nobody, and remove the stale pid file"
    ),
}
# What must not be done now, of those verdicts where somebody might.
NEVER: dict[str, str] = {
    "stopped-dirty": "do not resume from the newest file before it was checked",
    "signal-ignored": "do not wait, and do not send the same signal again",
    "signal-blocked": "do not send the same signal again",
    "no-permission": "do not take it as stopped",
    "pid-reused": "do not send it anything: it is a stranger",
    "zombie": "do not wait for its pid to go away, and do not send KILL: it is dead",
    "exiting-stuck": "do not send anything more: it has its signal",
    "frozen": "do not send KILL for a clean stop, and do not enter its container: whoever enters is frozen too",
    "suspended": "do not let it go on before you know who stopped it",
    "traced": "do not attach a second debugger",
    "uninterruptible": "do not attach a debugger or strace, and do not report success after KILL",
    "handler-not-run": "do not send the same signal again",
    "signal-swallowed": "do not send more of the same signal",
    "deadlocked": "do not send the same signal again: its handlers would nest",
    "exit-blocked": "do not begin with KILL",
    "shutdown-progressing": "do not signal again: a second signal cuts what it writes",
    "shutdown-pending": "do not send KILL in the middle of a step",
    "waiting-for-child": "do not send KILL to the parent: it would leave the child behind",
    "wrapper-not-forwarding": "do not send KILL to the wrapper: the child would live on",
    "children-survive": "do not end them by a pattern of their name",
    "respawned": "do not end the new process again and again",
    "output-blocked": "do not send KILL before the reader was woken",
    "resource-held": "do not remove a lock before its pid was checked",
    "unexplained": "do not send KILL while unsaved work matters",
}


def never(verdict: str) -> str:
    """What must not be done, or an empty text."""
    return NEVER.get(verdict, "")


def say(verdict: str, detail: str | None = None) -> tuple[str, str]:
    """(one line for people, advice) of a verdict; an unknown one, of a newer agent, is named as it is."""
    unknown = Said(f"verdict '{verdict}', which this version of deployctl does not know", "read the evidence, or update deployctl")
    return DETAILS.get((verdict, detail or "")) or VERDICTS.get(verdict, unknown)
