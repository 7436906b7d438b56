"""Where in a command line the words of the program begin, and where those of the wrappers around it stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from deployctl.agent import match
from deployctl.flags.flag import is_value
from deployctl.flags.launchers import DOUBTFUL, LAUNCHERS, MODULES, NO_SUB, Launcher, of


@dataclass(frozen=True)
class Wrapper:
    """The own words of a program that starts another one: from `start` to before `end`. `forwards`: a launcher, no mere prefix."""

    name: str
    start: int
    end: int
    forwards: bool


@dataclass(frozen=True)
class Anatomy:
    """`start`: where the program's own arguments begin. `shell`: the program is a text for a shell, which no flag can meet.

    doubt: a word behind a program that is not known as a wrapper, and looks as if it were one: it names an interpreter or launcher.
    """

    start: int
    wrappers: tuple[Wrapper, ...] = ()
    shell: bool = False
    doubt: str = ""


@dataclass(frozen=True)
class _Given:
    """What a program was given to start: `kind` is "operand", "module", "code" or "nothing"; `at` the index of the word that says it.

    `end`: where its own options end; `seen`: the long ones among them.
    """

    kind: str
    at: int
    end: int
    name: str = ""
    seen: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Step:
    """A program on the way to the workload's own: its options begin at `start`."""

    name: str
    launcher: Launcher
    start: int
    interpreter: bool = False


def program_position(command: Sequence[str]) -> int:
    """The index right after the script or module, else right after the program: there the workload's own arguments begin."""
    return anatomy(command).start


def anatomy(command: Sequence[str], program: str = "") -> Anatomy:
    """The parts of a command line. `program` is the word behind which its arguments begin, where no rule can tell."""
    walked = _walk(command)
    if program and program in command:
        start = list(command).index(program) + 1
        return Anatomy(start, tuple(wrapper for wrapper in walked.wrappers if wrapper.end < start))
    return walked


def _walk(command: Sequence[str]) -> Anatomy:
    at, wrappers, module = 0, list[Wrapper](), False
    step = _program_at(command, at)
    while step is not None:
        given = _given(command, step.start, step.launcher)
        wrappers.append(Wrapper(step.name, step.start, given.end, step.launcher.forwards))
        at, shell = given.at, step.interpreter and step.name in match.SHELLS
        module = given.kind == "module"
        if module:
            step = _module_at(command, given)
        elif given.kind == "operand" and not _is_script(step, given):
            step = _program_at(command, at)
        else:
            swallowed = step.launcher.swallows and tuple(command[at + 1 : at + 2]) == ("--",)
            start = min(at + 1 + swallowed, len(command))
            return Anatomy(start, tuple(wrappers), shell and given.kind == "code")
    doubt = "" if module else next((word for word in command[at + 1 : -1] if _starts_one(word)), "")
    return Anatomy(min(at + 1, len(command)), tuple(wrappers), doubt=doubt)


def _starts_one(word: str) -> bool:
    """Whether a word is an interpreter or launcher that a trainer is started with."""
    return match.interpreter([word]) in ("python", "pypy") or PurePosixPath(word).name in DOUBTFUL


def _program_at(command: Sequence[str], at: int) -> _Step | None:
    """The wrapper or interpreter that a word names; None for any other program."""
    rest = command[at:]
    name = PurePosixPath(rest[0]).name if rest else ""
    interpreter = match.interpreter(rest)
    if interpreter is not None:
        return _Step(interpreter, of(match.INTERPRETERS[interpreter]), at + 1, interpreter=True)
    if name in match.PREFIXES:
        return _Step(name, of(match.PREFIXES[name]), at + 1)
    return _launcher(command, name, at + 1)


def _module_at(command: Sequence[str], given: _Given) -> _Step | None:
    """The launcher that `-m MODULE` starts; None for any other module."""
    if given.name in NO_SUB:
        return _Step(MODULES[given.name], LAUNCHERS[MODULES[given.name]], given.at + 1)
    return _launcher(command, MODULES.get(given.name, ""), given.at + 1)


def _launcher(command: Sequence[str], name: str, at: int) -> _Step | None:
    launcher = LAUNCHERS.get(name)
    if launcher is None or not launcher.sub:
        return None if launcher is None else _Step(name, launcher, at)
    while at < len(command) and command[at].startswith("-"):
        at += 2 if _takes_next(command, at, launcher) else 1
    return _Step(name, launcher, at + 1) if tuple(command[at : at + 1]) == (launcher.sub,) else None


def _is_script(step: _Step, given: _Given) -> bool:
    """Whether the operand is the program itself, not one more that starts it."""
    if step.interpreter:
        return PurePosixPath(given.name).name not in LAUNCHERS  # python /venv/bin/torchrun …, as a running one shows itself
    return (step.launcher.script and not given.seen & step.launcher.command) or (step.launcher.forwards and given.name.endswith(".py"))


def _given(command: Sequence[str], at: int, launcher: Launcher) -> _Given:
    end, seen, literal, operands = at, set[str](), False, launcher.operands
    while at < len(command):
        word = command[at]
        if word == "--" and not literal:
            literal, end = True, at
        elif literal or word[:1] not in launcher.signs or not word:
            if launcher.assigns and "=" in word:
                pass
            elif operands:
                operands -= 1
            else:
                return _Given("operand", at, end if literal else at, word, frozenset(seen))
        elif word == "-" and not launcher.assigns:
            return _Given("code", at, at, seen=frozenset(seen))
        else:
            kind, value, takes = _option(command, at, launcher)
            seen.add(canonical(word))
            if kind in ("code", "module"):
                behind = min(at + takes, len(command) - 1)
                return _Given(kind, behind, at, value or command[behind], frozenset(seen)) if value or takes else _Given("nothing", at, at)
            at += takes
        at += 1
    return _Given("nothing", len(command), len(command), seen=frozenset(seen))


def _option(command: Sequence[str], at: int, launcher: Launcher) -> tuple[str, str, int]:
    """(kind of the option that decides, the value in the word itself, how many words behind it belong to it)."""
    word = command[at]
    if word.startswith("--"):
        code = canonical(word) in launcher.long_code
        return "code" if code else "", "", int("=" not in word and (code or _takes_next(command, at, launcher)))
    for place, letter in enumerate(word[1:], 2):
        for kind in ("code", "module", "valued", "attached"):
            if letter in getattr(launcher, kind):
                return kind, word[place:], int(not word[place:] and kind != "attached")
    return "", "", 0


def _takes_next(command: Sequence[str], at: int, launcher: Launcher) -> bool:
    """Whether the value of a long option is the next word."""
    word, behind = command[at], "".join(command[at + 1 : at + 2])
    name = canonical(word)
    if "=" in word or not word.startswith("--"):
        return False
    rest = launcher.rest_valued and name not in launcher.switches and is_value(behind) and not behind.endswith(".py")
    return rest or name in {canonical(known) for known in launcher.long_valued}


def canonical(word: str) -> str:
    """An option without its value, one form for its spellings: `--max_seq_len=1` is `--max-seq-len`; a short one as it is."""
    name = word.partition("=")[0]
    return "--" + name[2:].replace("_", "-") if name.startswith("--") else name
