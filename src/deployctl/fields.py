"""The kinds of value that a YAML model has: texts, names, durations, signals, and the base of all models.

It does not know where a value stands. A fault leaves a validator as `ValueError(WordsError, *keys)`: the WordsError has its own words,
the keys lead from the value to the very place; `document.fit` makes of it one error with file and line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, GetCoreSchemaHandler, WithJsonSchema, model_validator
from pydantic_core import CoreSchema

from deployctl.errors import WordsError, suggestion
from deployctl.values import duration, file_mode, signal_name

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")
V = TypeVar("V")
W = TypeVar("W")


def carried(make: Callable[[V], W]) -> Callable[[V], W]:
    """The same function as a validator: its WordsError is carried in a ValueError, so that pydantic adds the place."""

    def validator(value: V) -> W:
        try:
            return make(value)
        except WordsError as error:
            raise ValueError(error) from error

    return validator


def _as_written(value: object) -> object:
    if value is None:
        raise WordsError("nothing stands here", todo="write a text, in quotes if it is '~' or 'null'")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return getattr(value, "written", str(value))
    return value


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise WordsError("the text holds a NUL byte", todo="remove it; no argument, path or environment can carry one")
    return text


def _filled(text: str) -> str:
    if not text:
        raise WordsError("the text is empty", todo="write something, or remove the key")
    return text


def _name(text: str) -> str:
    if not NAME.fullmatch(text):
        raise WordsError(f"'{text}' is no name", todo="use at most 60 letters, digits, '-', '_', '.'; the first a letter or digit")
    return text


def _absolute(text: str) -> str:
    if not text.startswith("/"):
        raise WordsError(f"'{text}' is no absolute path", todo="write the whole path, for example '/root/app'")
    return text


Text = Annotated[
    str,  # a number is its text as written
    BeforeValidator(carried(_as_written)),
    AfterValidator(carried(_without_nul)),
    WithJsonSchema({"type": ["string", "number", "boolean"]}),
]
Filled = Annotated[Text, AfterValidator(carried(_filled))]  # not empty
Name = Annotated[Text, AfterValidator(carried(_name))]
AbsolutePath = Annotated[Text, AfterValidator(carried(_absolute))]
Duration = Annotated[float, BeforeValidator(carried(duration))]  # seconds
FileMode = Annotated[str, BeforeValidator(carried(file_mode))]  # as chmod takes it
SignalName = Annotated[str, AfterValidator(carried(signal_name))]  # without SIG


def _make_strict(schema: object) -> None:
    if isinstance(schema, dict):
        if schema.get("type") in ("int", "float", "bool"):
            schema["strict"] = True
        for part in schema.values():
            _make_strict(part)
    elif isinstance(schema, (list, tuple)):
        for part in schema:
            _make_strict(part)


class Model(BaseModel):
    """The base of every model: an unknown key is a fault, and a text never becomes a number or a truth value."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    @classmethod
    def spoken(cls) -> str:
        """The model's name in a message: `Stop` is 'stop', `RungModel` is 'rung'."""
        return cls.__name__.removesuffix("Model").lower()

    @classmethod
    def known_keys(cls) -> tuple[str, ...]:
        """The keys that a YAML file may use."""
        return tuple(field.alias or name for name, field in cls.model_fields.items())

    @model_validator(mode="before")
    @classmethod
    def _only_known_keys(cls, value: Any) -> Any:
        known = cls.known_keys()
        for key in value if isinstance(value, dict) else ():
            if key not in known:
                error = WordsError(f"'{key}' is no key of {cls.spoken()}", todo=suggestion(str(key), known))
                raise ValueError(error, key)
        return value

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Numbers and truth values strict, the rest lax, since a strict model would refuse a list for a tuple."""
        schema = handler(source)
        _make_strict(schema)
        return schema
