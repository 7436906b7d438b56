"""A YAML file with its line numbers; names the place of every fault. The only importer of yaml.

What stands in a file is what is meant: plain decimal numbers, `true`, `false`, and nothing (`null`, `~`, empty); everything else (`yes`,
`on`, `0644`, `22:22`, `1_000`) stays the text that was written, and so does every key. It does not know what a file is for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

from deployctl.errors import WordsError, suggestion
from deployctl.values import Real, Whole

if TYPE_CHECKING:
    from pydantic import BaseModel

    M = TypeVar("M", bound=BaseModel)

Key = str | int
Keys = tuple[Key, ...]
DEPTH = 50  # levels of nesting; far more than any playbook has
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_REAL = re.compile(r"-?((0|[1-9][0-9]{0,17})(\.[0-9]{0,18})?|\.[0-9]{1,18})([eE][-+]?[0-9]{1,2})?")
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}
_WANTED = {
    "string_type": "a text", "int_type": "a whole number", "int_from_float": "a whole number", "float_type": "a number",
    "bool_type": "true or false", "list_type": "a list", "tuple_type": "a list", "dict_type": "a map of keys and values",
    "model_type": "a map of keys and values", "model_attributes_type": "a map of keys and values",
}  # fmt: skip


@dataclass(frozen=True)
class Document:
    """A YAML file: its data as plain dicts, lists and scalars, and the line of every key and item.

    shown is the path as messages name it: relative to the working directory if inside it.
    """

    path: Path
    data: Any
    shown: str
    lines: Mapping[Keys, int]

    def reach(self, *keys: Key) -> Keys:
        """The keys that stand in the file, in order: keys that a shorthand leaves out (`ladder` of `stop: [INT 5s]`) are skipped."""
        reached: Keys = ()
        for key in keys:
            if (*reached, key) in self.lines:
                reached = (*reached, key)
        return reached

    def line(self, *keys: Key) -> int:
        """The line, from 1, of a key or item, or of the nearest thing around it that is there."""
        return self.lines[self.reach(*keys)]

    def where(self, *keys: Key) -> str:
        """`file:line` of a key or item, or of the nearest thing around it that is there."""
        return f"{self.shown}:{self.line(*keys)}"

    def part(self, *keys: Key) -> Any:
        """What stands at a place; None where nothing does."""
        part = self.data
        for key in keys:
            if isinstance(part, list) and isinstance(key, int):
                part = part[key] if key < len(part) else None
            else:
                part = part.get(key) if isinstance(part, dict) else None
        return part

    def placed(self, error: WordsError, *keys: Key) -> WordsError:
        """The same error with the place of a key or item in it."""
        return WordsError(error.what, where=self.where(*keys), todo=error.todo)


def load(path: Path) -> Document:
    """A YAML file of one document. Raises WordsError, with file and line, for everything that is not plain data."""
    shown = _shown(path)
    text = _read(path, shown)
    lines: dict[Keys, int] = {(): 1}
    try:
        node = _Loader(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, text, shown) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise WordsError("a character that no YAML file may hold", where=f"{shown}:{line}", todo="remove it or write it escaped") from error
    return Document(path, None if node is None else _construct(node, (), lines, shown), shown, lines)


def _shown(path: Path) -> str:
    whole, here = path.absolute(), Path.cwd()
    return str(whole.relative_to(here)) if whole.is_relative_to(here) else str(path)


def _read(path: Path, shown: str) -> str:
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise WordsError("there is no such file", where=shown, todo="look at its name and directory") from error
    except IsADirectoryError as error:
        raise WordsError("this is a directory, not a file", where=shown, todo="name a YAML file in it") from error
    except OSError as error:
        raise WordsError(f"cannot be read: {error.strerror}", where=shown, todo="look at its rights and its directory's") from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise WordsError("this is not UTF-8 text", where=f"{shown}:{line}", todo="save the file as UTF-8") from error


class _Loader(yaml.SafeLoader):
    """Composes nodes with their places; refuses tags, anchors, aliases and nesting without end."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        problem = ""
        if event.anchor is not None:
            problem = "anchors ('&') and aliases ('*') are not known here"
        elif getattr(event, "tag", None) is not None:
            problem = f"the tag '{event.tag}' is not known here"
        elif self.depth >= DEPTH:
            problem = f"nested deeper than {DEPTH} levels"
        if problem:
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def _syntax_error(error: yaml.MarkedYAMLError, text: str, shown: str) -> WordsError:
    mark: Any = error.problem_mark or error.context_mark
    begun: Any = error.context_mark
    since = f" (begun in line {begun.line + 1})" if begun and begun.line != mark.line else ""
    what = ", ".join(part for part in (error.context, error.problem) if part) + since
    letter, first = (text[place.index : place.index + 1] for place in (mark, begun or mark))
    letter = first if first and first in "*&!" else letter
    todo = "look at this line and the one before: indentation, quotes, brackets"
    if letter == "\t":
        todo = "use spaces instead of the tab"
    elif letter and letter in "*&!%@`":
        todo = f"put a text that begins with '{letter}' in quotes"
    elif letter == ":":
        todo = "put a text that holds ': ' in quotes; else look at the indentation"
    return WordsError(what, where=f"{shown}:{mark.line + 1}", todo=todo)


def _construct(node: yaml.Node, at: Keys, lines: dict[Keys, int], shown: str) -> Any:
    lines.setdefault(at, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        return _construct_map(node, at, lines, shown)
    if isinstance(node, yaml.SequenceNode):
        return [_construct(item, (*at, index), lines, shown) for index, item in enumerate(node.value)]
    quoted = isinstance(node, yaml.ScalarNode) and node.style
    return node.value if quoted else _plain(node.value)


def _construct_map(node: yaml.MappingNode, at: Keys, lines: dict[Keys, int], shown: str) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key, line = key_node.value, key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            raise WordsError("a key must be a text, not a list or a map", where=f"{shown}:{line}", todo="write 'key: value'")
        if key == "<<" and not key_node.style:
            raise WordsError("merge keys ('<<') are not known here", where=f"{shown}:{line}", todo="write the keys out")
        if key in data:
            first = lines[(*at, key)]
            raise WordsError(f"'{key}' stands twice, in lines {first} and {line}", where=f"{shown}:{line}", todo="keep one of them")
        lines[(*at, key)] = line
        data[key] = _construct(value_node, (*at, key), lines, shown)
    return data


def _plain(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if _WHOLE.fullmatch(text):
        return Whole(text)
    return Real(text) if _REAL.fullmatch(text) else text


def fit(document: Document, model: type[M], at: Keys = (), value: object = None) -> M:
    """The model of what stands at a place, or of `value` where a shorthand there was written out.

    Raises WordsError for the first fault in the file, with file and line.
    """
    from pydantic import ValidationError

    try:
        return model.model_validate(document.part(*at) if value is None else value)
    except ValidationError as error:
        faults = [_fault(document, at, dict(fault)) for fault in error.errors(include_url=False)]
        raise min(faults, key=lambda fault: fault[0])[1] from error


def _fault(document: Document, at: Keys, fault: Mapping[str, Any]) -> tuple[int, WordsError]:
    """One fault of pydantic with its line; a WordsError that a validator carried keeps its words (see fields.py)."""
    keys = (*at, *(key for key in fault["loc"] if key != "[key]"))
    carried = getattr(fault.get("ctx", {}).get("error"), "args", ())
    if carried and isinstance(carried[0], WordsError):
        what, todo, place = carried[0].what, carried[0].todo, (*keys, *carried[1:])
    else:
        (what, todo), place = _sentence(fault), keys
    label = _label(document, at, keys[:-1] if fault["type"] == "missing" else keys)
    return document.line(*place), WordsError(label + what, where=document.where(*place), todo=todo)


def _label(document: Document, at: Keys, keys: Keys) -> str:
    """`stop: ladder[1]: `: the way from the model's own key to the fault; the fields of a shorthand item are left out."""
    while any(isinstance(key, int) for key in keys[len(at) : -1]) and document.reach(*keys)[-1:] != keys[-1:]:
        keys = keys[:-1]
    label = ""
    for key in keys[max(len(at) - 1, 0) :]:
        label += f"[{key}]" if isinstance(key, int) else f": {key}"
    return f"{label.removeprefix(': ')}: " if label else ""


def _sentence(fault: Mapping[str, Any]) -> tuple[str, str]:
    kind, value, context = fault["type"], fault["input"], fault.get("ctx", {})
    if kind == "missing":
        return f"'{fault['loc'][-1]}' is missing", f"add '{fault['loc'][-1]}: …'"
    if kind in _WANTED:
        unquoted = kind == "string_type" and isinstance(value, (int, float, dict))  # [--x: y] is a map, too
        return f"wants {_WANTED[kind]}, not {_quoted(value)}", "put it in quotes" if unquoted else f"write {_WANTED[kind]}"
    if kind == "literal_error":
        return f"{_quoted(value)} is not {context['expected']}", suggestion(str(value), re.findall(r"'([^']*)'", context["expected"]))
    if kind in ("greater_than_equal", "less_than_equal"):
        return f"{_quoted(value)} is {'below' if 'ge' in context else 'above'} {context.get('ge', context.get('le'))}", "correct the number"
    if kind in ("too_short", "string_too_short"):
        return "there is too little here", f"give at least {context['min_length']}"
    if kind == "value_error":
        return str(context["error"]), ""
    return f"{_quoted(value)}: {fault['msg'][:1].lower()}{fault['msg'][1:]}", ""


def _quoted(value: object) -> str:
    if isinstance(value, (dict, list, tuple)):
        return "a map" if isinstance(value, dict) else "a list"
    if isinstance(value, bool):
        return f"'{str(value).lower()}'"
    return "nothing" if value is None else f"'{getattr(value, 'written', value)}'"
