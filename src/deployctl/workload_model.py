"""The workload of a playbook as a typed model: what the long-running program is, how it is known, as what it is started."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WrapValidator

from deployctl.errors import WordsError, suggestion
from deployctl.fields import AbsolutePath, Filled, Model, Name, Text, carried
from deployctl.workload import Rung, Workload, implied

LIMITS = (  # as setrlimit(2) names them, without RLIMIT_
    "as", "core", "cpu", "data", "fsize", "memlock", "msgqueue", "nice", "nofile", "nproc", "rss", "rtprio", "sigpending", "stack",
)  # fmt: skip


def _variable(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text):
        raise WordsError(f"'{text}' is no name of a variable", todo="use letters, digits and '_'; the first no digit")
    return text


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        todo = "the words of a command line are joined by NUL: '\\0'"
        raise WordsError(f"'{text}' is no regular expression: {error}", todo=todo) from error
    return text


def _inherit(value: object, fit_words: Callable[[object], tuple[str, ...]]) -> tuple[str, ...]:
    """`inherit` stands for no words: those of the process that runs."""
    return () if value == "inherit" else fit_words(value)


def _command(words: tuple[str, ...]) -> tuple[str, ...]:
    if not words or not words[0]:
        raise WordsError("there is no program", todo="write the program and its arguments as a list, for example '[python3, train.py]'")
    return words


class MatchModel(Model):
    """How a process is known: a text, words in their order or a regular expression over the command line; and where and whose it is.

    Without one of the three it is known by the command, as when there is no `match`.
    """

    text: Filled | None = None
    words: Annotated[tuple[Filled, ...], Field(min_length=1)] | None = None
    regex: Annotated[Filled, AfterValidator(carried(_pattern))] | None = None
    directory: AbsolutePath | None = None
    user: Filled | None = None


def _match(value: object) -> object:
    """A list is the words of a match."""
    return {"words": value} if isinstance(value, list) else value


def _one_form(value: MatchModel | str | None) -> MatchModel | str | None:
    if isinstance(value, MatchModel) and sum(form is not None for form in (value.text, value.words, value.regex)) > 1:
        raise WordsError("a match has one of text, words and regex", todo="keep one of them; directory and user may stand beside it")
    return value


Match = Annotated[MatchModel | Filled, BeforeValidator(_match), AfterValidator(carried(_one_form))]
def _log(text: str) -> str:
    for found in re.findall(r"\$\{([^}]*)\}", text):
        if found != "run":
            raise WordsError(f"'${{{found}}}' is nothing that a log's name may hold", todo="'${run}' is the run's id")
    return text


def _umask(text: str) -> str:
    if not re.fullmatch("0?[0-7]{3}", text):
        raise WordsError(f"'{text}' is no umask", todo="write three octal digits, for example '0027'")
    return text


def _limited(text: str) -> str:
    if text not in LIMITS:
        raise WordsError(f"'{text}' is no limit", todo=suggestion(text, LIMITS))
    return text


def _limit(text: str) -> str:
    try:
        soft, hard = _pair(text)
    except ValueError as error:
        raise WordsError(f"'{text}' is no limit", todo="write a number or 'unlimited', or 'SOFT:HARD'") from error
    if hard != -1 and (soft == -1 or soft > hard):
        raise WordsError(f"'{text}': the soft limit is above the hard one", todo="write 'SOFT:HARD'")
    return text


def _pair(text: str) -> tuple[int, int]:
    """(soft, hard) of 'SOFT:HARD' or of one for both. Raises ValueError."""
    soft, colon, hard = text.partition(":")
    return _number(soft), _number(hard if colon else soft)


def _number(text: str) -> int:
    if not text.isdecimal() and text != "unlimited":
        raise ValueError(text)
    return -1 if text == "unlimited" else int(text)


class WorkloadModel(Model):
    """The long-running program. `log` is absolute or relative to `directory`; `match` is how it is known if deployctl did not start it.

    A log whose name holds `${run}` is another one for each run. env_file lies in the target. An empty command stands for `inherit`:
    command, directory, environment and user are those of the process that runs.
    """

    name: Name
    directory: AbsolutePath = ""
    command: Annotated[tuple[Text, ...], AfterValidator(carried(_command)), WrapValidator(_inherit)]
    log: Annotated[Filled, AfterValidator(carried(_log))] | None = None
    match: Match | None = None
    environment: dict[Annotated[Text, AfterValidator(carried(_variable))], Text] = Field(default_factory=dict)
    user: Filled | None = None
    program: Text = ""
    subcommand: Text = ""
    style: Literal["option", "keyval"] = "option"
    wrapper_flags: tuple[Text, ...] = ()
    environment_base: Literal["clean", "inherit"] = "clean"
    env_file: Filled | None = None
    groups: tuple[Filled, ...] | None = None
    umask: Annotated[Text, AfterValidator(carried(_umask))] = "0022"
    nice: Annotated[int, Field(ge=-20, le=19)] | None = None
    oom_score_adj: Annotated[int, Field(ge=-1000, le=1000)] | None = None
    limits: dict[Annotated[Text, AfterValidator(carried(_limited))], Annotated[Text, AfterValidator(carried(_limit))]] = Field(
        default_factory=dict
    )

    @property
    def known_by(self) -> str | dict[str, Any] | None:
        """How its process is known, as the agent reads it."""
        return self.match.model_dump(exclude_none=True) if isinstance(self.match, MatchModel) else self.match

    def bound(self, command: tuple[str, ...], environment: Mapping[str, str], run: str, ladder: Sequence[Rung]) -> Workload:
        """The workload of one run, with the command and environment that the flags made of its own."""
        return Workload(
            name=self.name,
            directory=self.directory,
            command=command,
            log=None if self.log is None else self.log.replace("${run}", run),
            match=self.known_by,
            environment=environment,
            user=self.user,
            environment_base=self.environment_base,
            env_file=self.env_file,
            implied=implied(command, environment, ladder),
            groups=self.groups,
            umask=int(self.umask, 8),
            nice=self.nice,
            oom_score_adj=self.oom_score_adj,
            limits={f"RLIMIT_{name.upper()}": _pair(text) for name, text in self.limits.items()},
        )
