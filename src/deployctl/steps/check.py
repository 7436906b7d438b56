"""check: proves that the launched program works: alive for a while, a line in its log, a port, a page, a command, a GPU, a number."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from deployctl.errors import WordsError
from deployctl.fields import Duration, Filled, Model, Text, carried
from deployctl.steps.base import Operations, Setting, Step

_BOUND = re.compile(r"(-?[0-9.]+(?:e[-+]?[0-9]+)?)(?:\s*%\s*of\s+before)?", re.IGNORECASE)


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise WordsError(f"'{text}' is no regular expression: {error}", todo="see the syntax of Python's re; quote it in YAML") from error
    return text


def _one_group(text: str) -> str:
    if re.compile(_pattern(text)).groups != 1:
        raise WordsError(f"'{text}' does not have one group", todo=r"put '( )' around the number alone, for example 'tokens/s ([\d.]+)'")
    return text


def _loopback(text: str) -> str:
    parts = urlsplit(text)
    host = parts.hostname or ""
    try:
        local = host == "localhost" or ipaddress.ip_address(host).is_loopback
        _ = parts.port
    except ValueError:
        local = False
    if parts.scheme != "http" or not local or parts.username is not None:
        raise WordsError(f"'{text}' is no address in the target itself", todo="write for example 'http://127.0.0.1:8000/health'")
    return text


def _bound(text: str) -> str:
    found = _BOUND.fullmatch(text)
    try:
        float(found.group(1) if found else "")
    except ValueError as error:
        raise WordsError(f"'{text}' is no bound", todo="write a number, or '90% of before'") from error
    return text


def _listed(value: object) -> object:
    return value if isinstance(value, list) or value is None else [value]


def _addressed(value: object) -> object:
    return {"url": value} if isinstance(value, str) else value


Pattern = Annotated[str, AfterValidator(carried(_pattern))]
Bound = Annotated[Text, AfterValidator(carried(_bound))]


class HttpModel(Model):
    """A page of the target itself; without `status` any of 200 to 299 will do. A redirect is not followed."""

    url: Annotated[Filled, AfterValidator(carried(_loopback))]
    status: Annotated[tuple[Annotated[int, Field(ge=100, le=599)], ...], BeforeValidator(_listed)] = ()
    contains: Pattern | None = None


class MetricModel(Model):
    """A number that the log names again and again: the median of the last `over` ones is compared."""

    log: Annotated[str, AfterValidator(carried(_one_group))]
    name: Filled = "metric"
    at_least: Bound | None = None
    at_most: Bound | None = None
    over: Annotated[int, Field(ge=1, le=1000)] = 1

    def as_data(self) -> dict[str, Any]:
        """The metric as an operation of the job carries it; the agent adds `before`."""
        bounds = {"at_least": _bound_data(self.at_least), "at_most": _bound_data(self.at_most)}
        return {"name": self.name, "log": self.log, "over": self.over, **bounds}


def _bound_data(text: str | None) -> Mapping[str, Any] | None:
    found = _BOUND.fullmatch(text) if text is not None else None
    if found is None:
        return None
    of_before = "%" in found.group(0)
    return {"value": float(found.group(1)) / (100 if of_before else 1), "of_before": of_before}


class Check(Step):
    """Waits until the new process was alive for `alive` and all the rest has come about, at most `within`."""

    word: ClassVar[str] = "check"
    phase: ClassVar[str] = "cutover"
    needs: ClassVar[str] = "launch"

    alive: Duration = 5.0
    log: Pattern | None = None
    absent: Annotated[tuple[Pattern, ...], BeforeValidator(_listed)] = ()
    port: Annotated[tuple[Annotated[int, Field(ge=1, le=65535)], ...], BeforeValidator(_listed)] = ()
    http: Annotated[HttpModel | None, BeforeValidator(_addressed)] = None
    command: tuple[Text, ...] | None = Field(default=None, min_length=1)
    gpu: bool = False
    metric: MetricModel | None = None
    within: Duration = 60.0

    def compile(self, setting: Setting, piece: Any) -> Operations:
        """The check; there is nothing to undo."""
        asked = {
            "absent": list(self.absent),
            "port": list(self.port),
            "http": self.http and self.http.model_dump(mode="json"),
            "command": list(self.command or ()),
            "gpu": self.gpu,
            "metric": self.metric and self.metric.as_data(),
        }
        check = {"op": "check", "alive": self.alive, "log": self.log, "within": max(self.within, self.alive)}
        return Operations(do=({**check, **{kind: value for kind, value in asked.items() if value}},))
