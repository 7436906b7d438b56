"""Every verdict of the agent: one line for a person, and what to do. The agent's words come in, sentences go out."""

from __future__ import annotations

from typing import NamedTuple


class Said(NamedTuple):
    """A verdict in words: what is the case, and what to do."""

    line: str
    advice: str


VERDICTS: dict[str, Said] = {
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
}


def say(verdict: str, detail: str | None = None) -> tuple[str, str]:
    """(one line for people, advice) of a verdict; an unknown one, of a newer agent, is named as it is."""
    unknown = Said(f"verdict '{verdict}', which this version of deployctl does not know", "read the evidence, or update deployctl")
    return DETAILS.get((verdict, detail or "")) or VERDICTS.get(verdict, unknown)
