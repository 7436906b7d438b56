"""The kinds of step by their word. A new kind is one file and one line here."""

from __future__ import annotations

from deployctl.steps.base import Step
from deployctl.steps.check import Check
from deployctl.steps.launch import Launch
from deployctl.steps.push import Push
from deployctl.steps.snapshot import Snapshot
from deployctl.steps.stop import Stop
from deployctl.steps.verify import Verify

KINDS: dict[str, type[Step]] = {kind.word: kind for kind in (Push, Verify, Snapshot, Stop, Launch, Check)}
