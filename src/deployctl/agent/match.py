"""Whether a command line is the one that a text names: whole words and path components, never parts of them. Reads no process."""

from __future__ import annotations

import os
import re
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union


class Grammar(NamedTuple):
    """How a program finds its own operand, the script, among its options: letters of short options, whole words of long ones."""

    code: str = ""  # the program text itself stands on the line: no script
    module: str = ""  # the value names a module, which is the operand
    valued: str = ""  # takes a value: the rest of the word, else the next word
    attached: str = ""  # the rest of the word is its value, if there is one
    long_code: Sequence[str] = ()
    long_valued: Sequence[str] = ()
    signs: str = "-"
    assigns: bool = False  # NAME=value words may stand before the operand


class Operand(NamedTuple):
    """What an interpreter was given: the script or module, and which word of the line holds it."""

    name: str
    place: int
    module: bool


_SHELL = Grammar(code="cs", valued="oO", signs="-+", long_valued=("--rcfile", "--init-file"))
_PYTHON = Grammar(code="c", module="m", valued="WX", long_valued=("--check-hash-based-pycs",))
INTERPRETERS: Mapping[str, Grammar] = {
    "python": _PYTHON,
    "pypy": _PYTHON,
    "perl": Grammar(code="eE", valued="I", attached="MmiDCFdlVx0"),
    "ruby": Grammar(code="e", valued="IrCEX", attached="iKTWFx0", long_valued=("--encoding", "--external-encoding")),
    "node": Grammar(
        code="ep", valued="rC", long_code=("--eval", "--print"),
        long_valued=("--require", "--import", "--loader", "--experimental-loader", "--conditions", "--env-file"),
    ),
    "bash": _SHELL, "sh": _SHELL, "dash": _SHELL, "zsh": _SHELL, "ksh": _SHELL, "ash": _SHELL,
}  # fmt: skip
FORMS = ("text", "words", "regex")
SHELLS = ("bash", "sh", "dash", "zsh", "ksh", "ash")
# Programs that put another one in their own place: they stand in commands, never in /proc.
PREFIXES: Mapping[str, Grammar] = {
    "env": Grammar(valued="uC", assigns=True, long_valued=("--unset", "--chdir")),
    "nice": Grammar(valued="n", long_valued=("--adjustment",)),
    "nohup": Grammar(),
    "setsid": Grammar(),
    "exec": Grammar(valued="a"),
    "ionice": Grammar(valued="cn", long_valued=("--class", "--classdata")),
    "stdbuf": Grammar(valued="ioe", long_valued=("--input", "--output", "--error")),
}
_VERSIONED = re.compile(r"([a-z]+)[\d.]*t?")


def known_by(workload: Dict[str, Any]) -> Dict[str, Any]:
    """The workload with its `match` filled in, by which its process is known: a text, a list of words, or a map (form, conditions)."""
    wanted = workload.get("match") or derive(workload["command"])
    if isinstance(wanted, dict) and not any(wanted.get(form) for form in FORMS):
        wanted = dict(wanted, text=derive(workload["command"]))
    return dict(workload, match=wanted)


def form(wanted: Union[str, List[str], Dict[str, Any]]) -> Dict[str, Any]:
    """A match as a map: {"text"}, {"words"} or {"regex"}, with directory and user where these are conditions."""
    return {"text": wanted} if isinstance(wanted, str) else {"words": wanted} if isinstance(wanted, list) else wanted


def shown(wanted: Union[str, List[str], Dict[str, Any]]) -> str:
    """A match as a person would say it."""
    known = form(wanted)
    words = known.get("text") or " ".join(known.get("words") or ()) or "/%s/" % known.get("regex")
    return ", ".join([words] + ["%s %s" % (name, known[name]) for name in ("directory", "user") if known.get(name)])


def fits(wanted: Dict[str, Any], argv: Sequence[str], comm: str) -> bool:
    """Whether a command line is the wanted one (a form), its conditions apart."""
    if wanted.get("words"):
        return _in_order(wanted["words"], argv)
    if wanted.get("regex"):
        return re.search(wanted["regex"], "\0".join(argv)) is not None
    return matches(wanted["text"], argv, comm)


def _in_order(words: Sequence[str], argv: Sequence[str]) -> bool:
    """Whether the words stand on the line in this order, each whole; others may stand between. The program may be its last component."""
    line = iter(argv)
    return all(any(word == other or (place == 0 and _names(word, other)) for other in line) for place, word in enumerate(words))


def matches(text: str, argv: Sequence[str], comm: str) -> bool:
    """Whether the text is the program's name, or the script or module that an interpreter was given, whole or its last component.

    comm tells an interpreter whose argv[0] was chosen freely. Wrappers (uv, torchrun, accelerate) are known only by their own script's
    name so far: what they are to run stands in their own grammar, which belongs to the launchers.
    """
    if not argv or not text:
        return False
    operand = given(argv, comm)
    if operand is not None and operand.module:
        return text == operand.name or _names(text, argv[0])
    return _names(text, argv[0]) or (operand is not None and _names(text, operand.name))


def script(command: Sequence[str]) -> Optional[str]:
    """The script or module of a command that is an interpreter's; None for any other, whose name says little of what it runs."""
    return derive(command) if command and given(_unwrapped(command)) is not None else None


def derive(command: Sequence[str]) -> str:
    """What a command is known by when nothing is said: the last component of its script (a module whole), else the program's name."""
    command = _unwrapped(command)
    operand = given(command)
    if operand is not None and operand.module:
        return operand.name
    return os.path.basename(os.path.normpath(operand.name if operand is not None else command[0]))


def interpreter(argv: Sequence[str], comm: str = "") -> Optional[str]:
    """'python', 'bash', …: which interpreter the line belongs to, without its version; None for any other program."""
    for name in (os.path.basename(argv[0]).lstrip("-") if argv else "", comm):
        found = _VERSIONED.fullmatch(name)
        if found and found.group(1) in INTERPRETERS:
            return found.group(1)
    return None


def is_shell(argv: Sequence[str], comm: str = "") -> bool:
    """Whether the line is that of a shell, which starts programs and waits for them."""
    return interpreter(argv, comm) in SHELLS


def given(argv: Sequence[str], comm: str = "") -> Optional[Operand]:
    """The script or module that an interpreter was given; None for another program, for `-c …` and for a program from stdin."""
    name = interpreter(argv, comm)
    return None if name is None else _operand(argv, INTERPRETERS[name])


def _names(text: str, path: str) -> bool:
    """Whether the text is the path, but for a leading `./`, or its last component."""
    whole = os.path.normpath(path)
    return bool(path) and (os.path.normpath(text) == whole or text == os.path.basename(whole))


def _unwrapped(command: Sequence[str]) -> Sequence[str]:
    """The command behind `env A=1 nice -n 5 …`."""
    while os.path.basename(command[0]) in PREFIXES:
        operand = _operand(command, PREFIXES[os.path.basename(command[0])])
        if operand is None:
            break
        command = command[operand.place :]
    return command


def _operand(argv: Sequence[str], grammar: Grammar) -> Optional[Operand]:
    at = 1
    while at < len(argv) and argv[at] != "--":
        word = argv[at]
        if word == "-" or word.split("=")[0] in grammar.long_code:
            return None
        if word.startswith("--"):
            at += 2 if word in grammar.long_valued else 1
        elif len(word) > 1 and word[0] in grammar.signs:
            kind, value = _short(word, grammar)
            if kind == "code":
                return None
            if kind == "module":
                return _at(argv, at + 1, True) if not value else Operand(value, at, True)
            at += 2 if kind == "valued" and not value else 1
        elif grammar.assigns and "=" in word:
            at += 1
        else:
            return Operand(word, at, False)
    return _at(argv, at + 1, False)


def _at(argv: Sequence[str], index: int, module: bool) -> Optional[Operand]:
    return Operand(argv[index], index, module) if index < len(argv) else None


def _short(word: str, grammar: Grammar) -> Tuple[str, str]:
    """(kind of the option that decides, the rest of the word) of a cluster of short options, such as -um or -Wignore."""
    for place, letter in enumerate(word[1:], 2):
        for kind in ("code", "module", "valued", "attached"):
            if letter in getattr(grammar, kind):
                return kind, word[place:]
    return "flags", ""
