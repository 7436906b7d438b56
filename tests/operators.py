"""Two operators without root, of one group, on this machine. Becoming one of them needs root."""

from __future__ import annotations

from collections.abc import Sequence

from deployctl.transports.local import Local, LocalChannel

GROUP, ANNA, BERT = 64100, 64101, 64102


class As(Local):
    """This machine, as another user."""

    def __init__(self, uid: int) -> None:
        super().__init__()
        self._become = ["/usr/bin/setpriv", f"--reuid={uid}", f"--regid={GROUP}", "--clear-groups"]

    def open(self, argv: Sequence[str]) -> LocalChannel:
        return super().open([*self._become, *argv])
