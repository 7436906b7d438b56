"""A flag from what a playbook says of it. Every key is looked at here, whoever reads the file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from deployctl.errors import WordsError, suggestion
from deployctl.flags.flag import NUMBERS, REPEATS, STYLES, TYPES, Flag, Value

KEYS = (
    "type", "help", "min", "max", "choices", "default", "option", "spelling", "also", "off", "repeat", "nargs", "env", "style",
    "subcommand", "newest", "complete",
)  # fmt: skip
OPTION = re.compile(r"-[A-Za-z]|--?[A-Za-z][A-Za-z0-9_.-]*")
KEYVAL = re.compile(r"(?:\+\+|\+)?[A-Za-z_][A-Za-z0-9_.@:/-]*")  # a key of Hydra's, with what it puts before it
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def declared(raw: Mapping[str, Any]) -> tuple[Flag, ...]:
    """The flags that the `flags:` of a playbook declare, from its plain data. Raises WordsError; `where` is then the flag's name."""
    flags = tuple(declare(name, fields) for name, fields in raw.items())
    look_at_all(flags)
    return flags


def look_at_all(flags: Sequence[Flag]) -> None:
    """Raises WordsError, `where` being the second one's name, for two flags that one word would set."""
    seen: dict[str, str] = {}
    for flag in flags:
        own = {f"--{flag.called}"} | ({f"--no-{flag.called}"} if flag.type == "bool" else set())
        theirs = (
            {f"variable {flag.env}"} if flag.env else {f"the program's {word}" for word in (flag.spelled(flag.style or ""), *flag.also)}
        )
        for word in sorted(own | theirs):
            if word in seen:
                raise WordsError(f"'{word}' is of the flag '{seen[word]}' already", where=flag.name, todo="keep one of them")
            seen[word] = flag.name


def declare(name: str, raw: object) -> Flag:
    """One flag from its name and its plain data. Raises WordsError; `where` is then its name."""
    try:
        return _declare(name, raw)
    except WordsError as error:
        raise WordsError(error.what, where=name, todo=error.todo) from error


def _declare(name: str, raw: object) -> Flag:
    fields = raw if isinstance(raw, dict) else {}
    if not isinstance(raw, dict):
        raise WordsError("wants a map of keys and values", todo="write for example '{type: int, help: …}'")
    if not _NAME.fullmatch(name):
        raise WordsError(f"'{name}' is no flag", todo="use letters, digits, '-' and '_', without the dashes in front")
    for key in fields:
        if key not in KEYS:
            raise WordsError(f"'{key}' is no key of flag", todo=suggestion(str(key), KEYS))
    kind = _one_of("type", fields, TYPES)
    flag = Flag(name, kind, written(fields.get("help") or ""), choices=_choices(kind, fields), option=_option(fields))
    return _with_file(_with_values(_with_spellings(_with_number(flag, fields), fields), fields), fields)


def _one_of(key: str, fields: Mapping[str, Any], known: tuple[str, ...]) -> str:
    """The text of a key that has a few words; the first of them stands for nothing, but a type is a str."""
    text = written(fields.get(key, "str" if key == "type" else known[0]))
    if text not in known:
        raise WordsError(f"'{text}' is no {key}", todo=suggestion(text, known))
    return text


def _option(fields: Mapping[str, Any]) -> str:
    option = written(fields["option"]) if "option" in fields else ""
    if option and not _NAME.fullmatch(option):
        todo = f"deployctl's own name for it stands here, without dashes; the program's is 'spelling: {option}'"
        raise WordsError(f"'{option}' is no option", todo=todo)
    return option


def _choices(kind: str, fields: Mapping[str, Any]) -> tuple[str, ...]:
    choices = fields.get("choices")
    if (kind == "choice") != bool(choices):
        raise WordsError("'choices' and 'type: choice' go together", todo="write both or none")
    if not isinstance(choices, list | None):
        raise WordsError("choices: wants a list", todo="write for example '[small, large]'")
    return tuple(written(choice) for choice in choices or ())


def _with_number(flag: Flag, fields: Mapping[str, Any]) -> Flag:
    """The flag with how many values it takes."""
    repeat, nargs = _one_of("repeat", fields, REPEATS), written(fields["nargs"]) if "nargs" in fields else ""
    if nargs and not re.fullmatch(r"[+*]|[1-9][0-9]?", nargs):
        raise WordsError(f"'{nargs}' is no nargs", todo="write '+', '*' or a number")
    if nargs and repeat != "once":
        raise WordsError("'nargs' and 'repeat' do not go together", todo="keep one of them")
    if flag.type == "bool" and (nargs or repeat != "once"):
        raise WordsError("a bool has one value", todo="remove 'nargs' and 'repeat'")
    return replace(flag, repeat=repeat, nargs=nargs)


def _with_spellings(flag: Flag, fields: Mapping[str, Any]) -> Flag:
    """The flag with how the program calls it, and how it is switched off."""
    style = _one_of("style", fields, STYLES) if "style" in fields else None
    env = written(fields["env"]) if "env" in fields else ""
    spelling, off = (written(fields.get(key, "")) for key in ("spelling", "off"))
    subcommand = written(fields["subcommand"]) if "subcommand" in fields else None
    also = tuple(written(word) for word in _list("also", fields))
    if env and not _VARIABLE.fullmatch(env):
        raise WordsError(f"'{env}' is no name of a variable", todo="use letters, digits and '_'; the first no digit")
    for key in ("spelling", "also", "style", "subcommand") if env else ():
        if key in fields:
            raise WordsError(f"'env' and '{key}' do not go together", todo="a variable is no word of the command line; keep one of them")
    for word in (*([spelling] if "spelling" in fields else []), *also):
        if not (OPTION.fullmatch(word) or (style != "option" and KEYVAL.fullmatch(word))):
            raise WordsError(f"'{word}' is no option", todo="write it as the program spells it, for example '--batch_size' or '-b'")
    if style == "keyval" and flag.several:
        raise WordsError("a key=value has one value", todo="write a list as its text: '[a,b]'")
    if off and flag.type != "bool":
        raise WordsError(f"a {flag.type} cannot be switched off", todo="remove 'off'; `--unset` removes a flag")
    if off and not env and not re.match(r"--?[A-Za-z]|~|\+|[A-Za-z_][^=]*=", off):
        raise WordsError(f"'{off}' switches nothing off", todo="write the program's word, for example '--no-compile'")
    return replace(flag, env=env, also=also, style=style, spelling=spelling, off=off, subcommand=subcommand)


def _with_file(flag: Flag, fields: Mapping[str, Any]) -> Flag:
    """The flag with how its value is found after the stop."""
    newest = written(fields["newest"]) if "newest" in fields else ""
    complete = tuple(written(word) for word in _list("complete", fields))
    if newest and (flag.type != "path" or flag.several):
        raise WordsError("'newest' is for one file", todo="write 'type: path', without 'nargs' and 'repeat'")
    if complete and not newest:
        raise WordsError("'complete' checks the files of 'newest'", todo="write both, or remove it")
    return replace(flag, newest=newest, complete=complete)


def _with_values(flag: Flag, fields: Mapping[str, Any]) -> Flag:
    """The flag with bounds and default, each read as a value of its type."""
    bounds: dict[str, float] = {}
    for key in ("min", "max"):
        if fields.get(key) is not None:
            if flag.type not in NUMBERS:
                raise WordsError(f"a {flag.type} has no '{key}'", todo=f"remove it; these have: {', '.join(NUMBERS)}")
            bounds[key] = float(_inner(flag, key, fields[key]))
    flag = replace(flag, min=bounds.get("min"), max=bounds.get("max"))
    if flag.min is not None and flag.max is not None and flag.min > flag.max:
        raise WordsError("'min' is above 'max'", todo="exchange them")
    default = fields.get("default")
    if default is None:
        return flag
    if not flag.several:
        return replace(flag, default=_inner(flag, "default", default))
    try:
        return replace(flag, default=flag.read([written(item) for item in (default if isinstance(default, list) else [default])]))
    except WordsError as error:
        raise WordsError(f"default: {error.what}", todo=error.todo) from error


def _inner(flag: Flag, key: str, raw: object) -> Value:
    try:
        return flag.parse(written(raw))
    except WordsError as error:
        raise WordsError(f"{key}: {error.what}", todo=error.todo) from error


def _list(key: str, fields: Mapping[str, Any]) -> list[Any]:
    found = fields.get(key, [])
    if not isinstance(found, list):
        raise WordsError(f"{key}: wants a list", todo="write for example '[-b, --batch]'")
    return found


def written(raw: object) -> str:
    """The text of a scalar of a YAML file, as it was written there."""
    if isinstance(raw, (dict, list)) or raw is None:
        raise WordsError("wants a single value", todo="write a text or a number")
    if isinstance(raw, bool):
        return str(raw).lower()
    return str(getattr(raw, "written", raw))
