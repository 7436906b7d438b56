"""The readers of events on this side: the screen of a person, the quiet one for nights, JSON lines for programs."""

from __future__ import annotations

import json
import sys
from typing import TextIO

from rich.console import Console
from rich.text import Text

from deployctl.events import Event, Sink
from deployctl.report.line import Line
from deployctl.report.lines import line

MOODS = {"good": "green", "bad": "bold red", "note": "dim", "plain": ""}
LABEL = 10  # columns


class Screen:
    """Prints each event as it happens, with the time since the run began."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.console = Console(file=stream or sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=True)
        self._began: dict[str, float] = {}

    def __call__(self, event: Event) -> None:
        """One event."""
        began = self._began.setdefault(event["run"], event["t"])
        said = line(event)
        if said is not None:
            self._print(said, max(0.0, event["t"] - began), last=event["what"] == "end")

    def _print(self, said: Line, elapsed: float, last: bool) -> None:
        if last:
            self.console.print(Text(f"{said.label}: {said.text}", style=MOODS[said.mood]))
        else:
            row = Text(f"{elapsed:7.1f} s  ", style="dim")
            row.append(f"{said.label:<{LABEL}} ", style=MOODS[said.mood] or "bold")
            row.append(said.text, style="red" if said.mood == "bad" else "")
            self.console.print(row)
        for more in said.more:
            self.console.print(Text(f"{'':11}{'':{LABEL}} {more}", style="dim"))


class Quiet:
    """Shows only what went wrong: the events of a run that ended with another status than 0. Nothing at all of a good one."""

    def __init__(self, show: Sink) -> None:
        self._show = show
        self._runs: dict[str, list[Event]] = {}

    def __call__(self, event: Event) -> None:
        """Keeps the event; at the end of a run that went wrong the whole of it is shown."""
        kept = self._runs.setdefault(event["run"], [])
        kept.append(event)
        if event["what"] == "end":
            del self._runs[event["run"]]
            if event["status"] != 0:
                for told in kept:
                    self._show(told)


def as_json(event: Event) -> None:
    """One event, one line on stdout."""
    sys.stdout.write(json.dumps(event, ensure_ascii=True) + "\n")
    sys.stdout.flush()
