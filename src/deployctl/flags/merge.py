"""How new values meet the command line that is already there: what goes, what stands where. The one place that knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from deployctl.errors import WordsError
from deployctl.flags.anatomy import Anatomy, Wrapper, anatomy, canonical
from deployctl.flags.declare import OPTION
from deployctl.flags.flag import Flag, Given, is_value
from deployctl.flags.item import Item, Old, abbreviates
from deployctl.flags.keyval import key_of, meet_keys

Pair = tuple[Flag, Given | None]  # None: the flag is taken away


@dataclass(frozen=True)
class Shape:
    """What a playbook says of its command line: all its flags, which of them are the wrapper's, the word behind which the program's
    arguments begin, the subcommand behind which its flags stand, and how they are written.
    """

    flags: tuple[Flag, ...] = ()
    wrapper_flags: tuple[str, ...] = ()
    program: str = ""
    subcommand: str = ""
    style: str = "option"

    def style_of(self, flag: Flag) -> str:
        """How the flag is written: a flag of the wrapper is always an option."""
        return "option" if flag.name in self.wrapper_flags else flag.style or self.style

    def subcommand_of(self, flag: Flag) -> str:
        """The subcommand behind which the flag stands; empty for the main program."""
        return self.subcommand if flag.subcommand is None else flag.subcommand


PLAIN = Shape()


def merge(command: Sequence[str], values: Iterable[Pair], extra: Sequence[str] = (), shape: Shape = PLAIN) -> tuple[str, ...]:
    """The command line with the flags set, and with the undeclared flags `extra` (`--f=v` or a bare `--f`), which win.

    Every earlier one before a bare `--` goes; the new one stands where the first of them stood, else right behind the script, module or
    subcommand. Doing it again changes nothing. Raises WordsError for what cannot be set.
    """
    pairs = [(flag, given) for flag, given in values if not flag.env]
    wrapped = [Item(flag, given) for flag, given in pairs if flag.name in shape.wrapper_flags]
    items = _items([pair for pair in pairs if pair[0].name not in shape.wrapper_flags], extra, shape)
    parts = anatomy(command, shape.program)
    if parts.shell and items:
        todo = "write it as a list of words, or let the flag set a variable ('env: NAME')"
        raise WordsError("the program is a text for a shell, which no flag can meet", where="workload: command", todo=todo)
    if parts.doubt and items:
        what = f"the flags could be those of '{command[parts.start - 1]}', or of what '{parts.doubt}' starts"
        raise WordsError(what, where="workload: command", todo="write 'program: WORD' there, the word behind which they begin")
    behind = list(command[parts.start :])
    behind = meet_keys(behind, [item for item in items if _style(item, shape) == "keyval"])
    end = behind.index("--") if "--" in behind else len(behind)
    arguments = _arguments(behind[:end], [item for item in items if _style(item, shape) == "option"], shape)
    return (*_front(command[: parts.start], parts, wrapped), *arguments, *behind[end:])


def misspelled(flag: Flag, shape: Shape) -> WordsError | None:
    """What is wrong with how a flag is spelled, in the style that it has among the others of its playbook; None for nothing."""
    style = shape.style_of(flag)
    if flag.env:
        wrapped = flag.name in shape.wrapper_flags
        return WordsError("a variable is no flag of the wrapper", todo="remove one of the two") if wrapped else None
    if style == "keyval" and flag.several:
        return WordsError("a key=value has one value", todo="write a list as its text: '[a,b]'")
    for word in filter(None, (flag.spelling, *flag.also, flag.off)):
        if word.startswith("-") != (style == "option"):
            form = "an option: '--flag'" if style == "option" else "a key: 'flag', '+flag' (or '~flag' to switch it off)"
            return WordsError(f"'{word}' is not written as the others", todo=f"write {form}, or give the flag a 'style'")
    return None


def environment(base: Mapping[str, str], values: Iterable[Pair]) -> dict[str, str]:
    """The variables with those that flags set, and without those that they take away."""
    texts = {flag.env: None if given is None else flag.variable(given) for flag, given in values if flag.env}
    return {name: text for name, text in {**base, **texts}.items() if text is not None}


def _style(item: Item, shape: Shape) -> str:
    if item.raw:
        return "keyval" if key_of(item.raw[0])[1] and not item.raw[0].startswith("-") else "option"
    return shape.style_of(item.flag)


def _items(pairs: Sequence[Pair], extra: Sequence[str], shape: Shape) -> list[Item]:
    """The declared flags in their order, then the undeclared ones, of which each takes the place of a declared one of its name."""
    items = [Item(flag, given) for flag, given in pairs]
    taken: dict[int, int] = {}
    fresh: dict[str, Item] = {}
    for word in extra:
        name = _name(word, shape)
        place = next((place for place, item in enumerate(items) if _answers(item, name, shape)), None)
        if any(name in Item(flag).names for flag in shape.flags if flag.name in shape.wrapper_flags):
            raise WordsError(f"'{word}' is a flag of the wrapper", where="--", todo="give it before the '--', as a declared flag")
        if place is not None:
            before = items[place].raw if place in taken else ()
            taken[place] = 1
            items[place] = replace(items[place], raw=(*before, word))
            continue
        known = next((flag for flag in shape.flags if not flag.env and _answers(Item(flag), name, shape)), None)
        old = fresh.get(name, Item(known or Flag(name, "bool", spelling=name)))
        flag = replace(old.flag, type="str") if known is None and "=" in word else old.flag
        fresh[name] = replace(old, flag=flag, raw=(*old.raw, word))
    return [*items, *fresh.values()]


def _name(word: str, shape: Shape) -> str:
    """The name of an undeclared flag: an option's, or a key's among key=value words. Raises WordsError."""
    if OPTION.fullmatch(word.partition("=")[0]):
        return canonical(word)
    if shape.style == "keyval" and key_of(word)[1]:
        return key_of(word)[1]
    form = "'key=value' or '--flag=value'" if shape.style == "keyval" else "'--flag=value' or '--flag'"
    raise WordsError(f"'{word}' is no flag", where="--", todo=f"write undeclared flags as {form}")


def meant(word: str, shape: Shape) -> str:
    """The name of the declared flag that an undeclared word sets, else the word's own. Raises WordsError for a word that is no flag."""
    name = _name(word, shape)
    return next((flag.name for flag in shape.flags if not flag.env and _answers(Item(flag), name, shape)), name)


def _answers(item: Item, name: str, shape: Shape) -> bool:
    """Whether an undeclared name is that of the item."""
    if shape.style_of(item.flag) == "keyval":
        return key_of(f"{item.flag.spelled('keyval')}=")[1] == name
    return name in item.names and item.flag.name not in shape.wrapper_flags


def _front(words: Sequence[str], parts: Anatomy, items: Sequence[Item]) -> list[str]:
    """The wrappers and the program, with the wrapper's flags set."""
    front = list(words)
    for item in items:
        wrapper = _wrapper_of(front, parts.wrappers, item)
        own = meet(front[wrapper.start : wrapper.end], [item], 0)
        grown = len(own) - (wrapper.end - wrapper.start)
        front[wrapper.start : wrapper.end] = own
        moved = [replace(one, start=one.start + grown, end=one.end + grown) if one.start > wrapper.start else one for one in parts.wrappers]
        moved[parts.wrappers.index(wrapper)] = replace(wrapper, end=wrapper.end + grown)
        parts = replace(parts, wrappers=tuple(moved))
    return front


def _wrapper_of(words: Sequence[str], wrappers: Sequence[Wrapper], item: Item) -> Wrapper:
    """The wrapper that has the flag already, else the innermost launcher, else the innermost of all. Raises WordsError without any."""
    if not wrappers:
        raise WordsError("the command has no wrapper", where=item.flag.name, todo="remove it from 'wrapper_flags'")
    has = [one for one in wrappers if any(item.old(words[: one.end], at) for at in range(one.start, one.end))]
    return (has or [one for one in wrappers if one.forwards] or list(wrappers))[-1]


def _arguments(words: list[str], items: Sequence[Item], shape: Shape) -> list[str]:
    """The program's arguments before a `--`, with its flags set: those of a subcommand behind it, those of the program before it."""
    known = {name for flag in shape.flags if shape.style_of(flag) == "option" for name in Item(flag).names if not flag.env}
    named = {shape.subcommand_of(item.flag) for item in items} | {shape.subcommand_of(flag) for flag in shape.flags} - {""}
    cut = min((at for sub in named if sub and (at := _subcommand(words, sub, shape)) is not None), default=None)
    for item in items:
        sub = shape.subcommand_of(item.flag)
        if sub and (cut is None or words[cut] != sub):
            raise WordsError(f"the command has no '{sub}'", where=f"--{item.flag.called}", todo="write it there, or mend 'subcommand'")
    if cut is None:
        return meet(words, items, 0, known, guess=True)
    main = [item for item in items if not shape.subcommand_of(item.flag)]
    sub_items = [item for item in items if shape.subcommand_of(item.flag)]
    return [*meet(words[:cut], main, 0, known, guess=True), words[cut], *meet(words[cut + 1 :], sub_items, 0, known, guess=True)]


def _subcommand(words: Sequence[str], sub: str, shape: Shape) -> int | None:
    """Where the subcommand stands: the first word that is it and no value of a declared flag."""
    names = {name for flag in shape.flags if flag.type != "bool" and not flag.env for name in Item(flag).names}
    values = {at + 1 for at, word in enumerate(words) if "=" not in word and canonical(word) in names}
    return next((at for at, word in enumerate(words) if word == sub and at not in values), None)


def meet(words: Sequence[str], items: Sequence[Item], at: int, known: Iterable[str] = (), guess: bool = False) -> list[str]:
    """The words with the items in the place of their old ones, else at `at`. `guess`: abbreviations are looked for."""
    names = {*known, *(name for item in items for name in item.names)}
    old, perhaps = _find(words, items, names, guess)
    new: dict[int, list[tuple[Item, list[str]]]] = {}
    dropped = set[int]()
    for number, item in enumerate(items):
        mine = old.get(number, [])
        if not item.appends:
            dropped.update(place for one in mine for place in range(one.start, one.end))
        place = (mine[-1].end if item.appends else mine[0].start) if mine else at
        place = max(place, perhaps.get(number, place)) if mine else perhaps.get(number, place)
        there = new.setdefault(place, [])
        there.insert(len(there) if mine else sum(not old.get(items.index(one)) for one, _ in there), (item, item.new(mine)))
    line = _Line()
    for place in range(len(words) + 1):
        for item, fresh in new.get(place, ()):
            line.place(fresh, item.open_ended)
        if place < len(words) and place not in dropped:
            line.keep(words[place])
    return line.end()


def _find(words: Sequence[str], items: Sequence[Item], names: set[str], guess: bool) -> tuple[dict[int, list[Old]], dict[int, int]]:
    """(the old words of each item; for an item of which a word may be an abbreviation: where the new one must stand to win over it)."""
    options = {canonical(word) for word in words if word.startswith("--")} | names
    old, perhaps, at = dict[int, list[Old]](), dict[int, int](), 0
    while at < len(words):
        number, found = next(((n, one) for n, item in enumerate(items) if (one := item.old(words, at))), (-1, None))
        if found is None and guess and not is_value(words[at]) and canonical(words[at]) not in names:
            for n, item in enumerate(items):
                sure = abbreviates(words[at], item, options)
                if sure == "surely":
                    number, found = n, item.old(words, at, canonical(item.spelling))
                elif sure:
                    perhaps[n] = next((place for place in range(at + 1, len(words)) if not is_value(words[place])), len(words))
        if found is not None:
            old.setdefault(number, []).append(found)
        at = found.end if found is not None else at + 1
    return old, perhaps


class _Line:
    """A line that grows; words that would swallow a positional wait for the next option."""

    def __init__(self) -> None:
        self._words: list[str] = []
        self._waiting: list[str] = []

    def place(self, words: Sequence[str], open_ended: bool) -> None:
        """New words of a flag."""
        if open_ended:
            self._waiting += words
        elif words:
            self._flush()
            self._words += words

    def keep(self, word: str) -> None:
        """A word that stood there before."""
        if not is_value(word):
            self._flush()
        self._words.append(word)

    def _flush(self) -> None:
        self._words += self._waiting
        self._waiting = []

    def end(self) -> list[str]:
        """The whole line."""
        self._flush()
        return self._words
