"""What is printed when nobody can read it any more: a closed terminal, a pipe whose reader left, a full disk."""

from __future__ import annotations

import io
import os
import sys


class Steady(io.TextIOWrapper):
    """A stream that falls silent for good at the first fault: what is done is worth more than what is said of it.

    A letter that its encoding lacks is shown as an escape.
    """

    def write(self, text: str) -> int:
        """Raises nothing for a reader that is gone."""
        try:
            return super().write(text)
        except OSError:
            self._fall_silent()
            return len(text)

    def flush(self) -> None:
        """Raises nothing for a reader that is gone."""
        try:
            super().flush()
        except OSError:
            self._fall_silent()

    def _fall_silent(self) -> None:
        """What waits to be written goes nowhere too."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.fileno())
        os.close(nowhere)


def steady() -> None:
    """Makes this process's stdout and stderr so."""
    sys.stdout, sys.stderr = _made(sys.stdout), _made(sys.stderr)


def _made(stream: object) -> Steady:
    if not isinstance(stream, io.TextIOWrapper):  # None: its descriptor was closed before we began
        stream = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    encoding, buffering = stream.encoding, stream.line_buffering
    return Steady(stream.detach(), encoding=encoding, errors="backslashreplace", line_buffering=buffering)
