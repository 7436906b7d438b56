"""What a run asks of its command line, and what comes of it when the values of the last launch are known. Pure: data in, data out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from deployctl.errors import RefusedError, WordsError
from deployctl.flags.changes import same
from deployctl.flags.flag import Flag, Given
from deployctl.flags.merge import PLAIN, Shape, environment, meant, merge

EXTRA = "--"  # under this name a launch remembers its undeclared flags
Texts = Mapping[str, Sequence[str]]  # by name, what was written: Flag.read makes the values of it


@dataclass(frozen=True)
class Settled:
    """The command line and environment with the flags of a run.

    values are those in force; remembered the texts of those that somebody chose, now or earlier (no defaults); kept came from the last
    launch; dropped are values of the last launch that are in force no more, although nobody said so; without are the variables that flags
    take away; newest what the job looks for after the stop (agent/newest.py says its keys), whose marks stand in command and environment.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str]
    values: Mapping[str, Given]
    remembered: Texts
    kept: Texts = field(default_factory=dict)
    dropped: Texts = field(default_factory=dict)
    without: tuple[str, ...] = ()
    newest: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Asked:
    """The playbook's command line, and what the words of this run say of its flags. `keep`: flags that are not given are as they were.

    An empty command is one that is not known yet (`command: inherit`): it stays empty.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str]
    shape: Shape = PLAIN
    values: Mapping[str, Given] = field(default_factory=dict)
    extra: tuple[str, ...] = ()
    unset: tuple[str, ...] = ()
    keep: bool = False

    def settle(self, last: Texts | None = None) -> Settled:
        """What is launched, `last` being what the last launch remembered.

        Raises WordsError for what cannot be set, RefusedError for a kept value that the playbook allows no more.
        """
        last = last or {}
        kept = dict(self._kept(last)) if self.keep else {}
        try:
            chosen = {name: self._flag(name).read(texts) for name, texts in kept.items() if name != EXTRA}
            settled = self._settle({**chosen, **self.values}, (*kept.get(EXTRA, ()), *self.extra), kept)
        except WordsError as error:
            if not kept:
                raise
            raise RefusedError(f"{error.where}: {error.what}", where="--keep-flags", todo="give the flag anew, or `--unset` it") from error
        dropped = {name: tuple(texts) for name, texts in self._dropped(last, kept, settled)}
        return replace(settled, kept=kept, dropped=dropped)

    def _flag(self, name: str) -> Flag:
        return next(flag for flag in self.shape.flags if flag.name == name)

    def _settle(self, chosen: Mapping[str, Given], extra: tuple[str, ...], kept: Texts) -> Settled:
        """The line with chosen values, with defaults for the others."""
        values: dict[str, Given] = {}
        for flag in self.shape.flags:
            value = chosen.get(flag.name, flag.mark if flag.newest else flag.default)
            if value is not None and flag.name not in self.unset:
                values[flag.name] = value
        pairs = [(flag, values.get(flag.name)) for flag in self.shape.flags if flag.name in values or flag.name in self.unset]
        written = {name: tuple(self._flag(name).written(value)) for name, value in chosen.items() if name not in kept}
        remembered = {**kept, **written, **({EXTRA: extra} if extra else {})}
        command = merge(self.command, pairs, extra, self.shape) if self.command else ()
        without = tuple(flag.env for flag, given in pairs if flag.env and (given is None or flag.variable(given) is None))
        newest = tuple(_wanted(flag) for flag in self.shape.flags if flag.newest and values.get(flag.name) == flag.mark)
        return Settled(command, environment(self.environment, pairs), values, remembered, without=without, newest=newest)

    def _kept(self, last: Texts) -> Iterator[tuple[str, tuple[str, ...]]]:
        """What the last launch remembered and this run says nothing of."""
        names = {flag.name for flag in self.shape.flags}
        said = {*self.values, *self.unset}
        yield from ((name, tuple(texts)) for name, texts in last.items() if name in names - said)
        now = {meant(word, self.shape) for word in self.extra} | said
        words = tuple(word for word in last.get(EXTRA, ()) if meant(word, self.shape) not in now)
        if words:
            yield EXTRA, words

    def _dropped(self, last: Texts, kept: Texts, settled: Settled) -> Iterator[tuple[str, Sequence[str]]]:
        """The values of the last launch that nobody spoke of and that this line does not have."""
        names = {flag.name for flag in self.shape.flags}
        for name, texts in self._kept(last):
            if name in kept:
                continue
            words = [word for word in texts if self._differs({}, (word,), settled)] if name == EXTRA else texts
            if words and (name == EXTRA or self._differs({name: texts}, (), settled)):
                yield name, words
        yield from ((name, texts) for name, texts in last.items() if name not in names and name != EXTRA)

    def _differs(self, texts: Texts, words: tuple[str, ...], settled: Settled) -> bool:
        """Whether the line would be another one with these values of the last launch."""
        try:
            values = {name: self._flag(name).read(text) for name, text in texts.items()}
            other = self._settle({**self.values, **values}, (*self.extra, *words), {})
        except WordsError:
            return True  # it is not even possible any more
        return other.environment != settled.environment or not same(settled.command, other.command, self.shape)


def _wanted(flag: Flag) -> dict[str, Any]:
    return {"mark": flag.mark, "flag": flag.called, "pattern": flag.newest, "complete": list(flag.complete), "default": flag.default}
