"""pct's command line: Getopt::Long, permuting until `--`, then positional arguments with types (contract 2)."""

import re
from dataclasses import dataclass, field

TRUE, FALSE = ("1", "on", "yes", "true"), ("0", "off", "no", "false")


class Refused(Exception):
    """Bad words: exit status 2, the text and a usage line on stderr."""


@dataclass(frozen=True)
class Syntax:
    """What a command takes: arguments in order as (name, kind), options as name to kind, and whether more words may follow."""

    name: str
    arguments: tuple[tuple[str, str], ...]
    options: dict[str, str]
    usage: str
    rest: bool = False

    def refuse(self, text: str) -> Refused:
        return Refused(f"{text}\npct {self.name} {self.usage}".rstrip())


@dataclass
class Parsed:
    """The words of one call."""

    arguments: dict[str, str] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    rest: list[str] = field(default_factory=list)


def parse(syntax: Syntax, given: list[str]) -> Parsed:
    """Sort the words; raises Refused."""
    parsed = Parsed()
    plain: list[str] = []
    unknown: list[str] = []
    left = list(given)
    while left:
        word = left.pop(0)
        if word == "--":
            plain += left
            break
        if len(word) > 1 and word.startswith("-"):
            take_option(syntax, word, left, parsed, unknown)
        else:
            plain.append(word)
    if unknown:
        raise syntax.refuse("".join(f"{text}\n" for text in unknown) + "400 unable to parse option")
    if len(plain) < len(syntax.arguments):
        raise syntax.refuse("400 not enough arguments")
    parsed.rest = plain[len(syntax.arguments) :]
    if parsed.rest and not syntax.rest:
        raise syntax.refuse("400 too many arguments")
    parsed.arguments = {name: word for (name, _), word in zip(syntax.arguments, plain, strict=False)}
    check(syntax, parsed)
    return parsed


def take_option(syntax: Syntax, word: str, left: list[str], parsed: Parsed, unknown: list[str]) -> None:
    """One option and its value: `--name value`, `--name=value`, `-name value`; a boolean's value may be left out."""
    name, equals, value = word.lstrip("-").partition("=")
    meant = [name] if name in syntax.options else [option for option in syntax.options if option.startswith(name)]
    if len(meant) != 1:
        unknown.append(f"Option {name} is ambiguous" if meant else f"Unknown option: {name}")
        return
    if not equals and syntax.options[meant[0]] == "boolean":
        # A bare boolean swallows the following word (contract 2).
        value = left.pop(0) if left and not left[0].startswith("-") else "1"
    elif not equals and left:
        value = left.pop(0)
    elif not equals:
        unknown.append(f"Option {name} requires an argument")
        return
    parsed.options[meant[0]] = value


def check(syntax: Syntax, parsed: Parsed) -> None:
    """Types of options and arguments; booleans become "1" and "0"."""
    for name, kind in syntax.options.items():
        value = parsed.options.get(name, "1").lower()
        if kind == "boolean" and name in parsed.options:
            if value not in TRUE + FALSE:
                raise syntax.refuse("400 unable to parse boolean option")
            parsed.options[name] = "1" if value in TRUE else "0"
        if kind == "integer" and name in parsed.options and not re.fullmatch(r"[0-9]+", value, re.ASCII):
            raise syntax.refuse(f"400 Parameter verification failed.\n{name}: type check ('integer') failed - got '{value}'")
    for name, kind in syntax.arguments:
        value = parsed.arguments[name]
        failed = "400 Parameter verification failed.\n"
        if kind == "vmid" and not re.fullmatch(r"-?[0-9]+", value, re.ASCII):
            raise syntax.refuse(f"{failed}{name}: type check ('integer') failed - got '{value}'")
        if kind == "vmid" and not re.fullmatch(r"[1-9][0-9]{2,8}", value, re.ASCII):
            raise syntax.refuse(f"{failed}{name}: invalid format - value does not look like a valid VM ID")
