from __future__ import annotations

import re
from pathlib import Path

import pytest

from deployctl import verdicts

AGENT = Path(verdicts.__file__).parent / "agent"
PAGES = Path(__file__).parent.parent / "docs" / "verdicts"


def test_a_verdict_is_said_with_its_advice() -> None:
    line, advice = verdicts.say("suspended", "stop-signal")
    assert "stopped by a signal" in line
    assert "CONT" in advice


def test_a_detail_with_words_of_its_own_is_said_in_them() -> None:
    assert verdicts.say("signal-ignored", "pid1") != verdicts.say("signal-ignored", "inherited")
    assert verdicts.say("signal-ignored", "a-detail-of-a-newer-agent") == verdicts.VERDICTS["signal-ignored"]
    assert verdicts.say("zombie") == verdicts.VERDICTS["zombie"]


def test_an_unknown_verdict_is_named_as_it_is() -> None:
    assert "'from-the-future'" in verdicts.say("from-the-future", None)[0]


def test_every_verdict_that_the_agent_gives_has_words() -> None:
    modules = [AGENT / f"{name}.py" for name in ("hearing", "aftermath", "kernel", "taken", "progress", "waits", "why")]
    said = re.compile(r'(?:finding\(\s*\(|return \(?|else \(|found = \(|verdict=)"([a-z-]+)", ')
    given = {word for module in modules for word in said.findall(module.read_text()) if "-" in word or word in verdicts.VERDICTS}
    assert {"signal-ignored", "no-permission", "zombie", "unexplained", "suspended", "respawned", "pid-reused", "deadlocked"} <= given
    assert given - set(verdicts.VERDICTS) == set()


@pytest.mark.parametrize("said", [*verdicts.VERDICTS.values(), *verdicts.DETAILS.values()], ids=lambda said: said.line[:30])
def test_words_are_lower_case_without_a_full_stop(said: verdicts.Said) -> None:
    for text in said:
        assert text[0].islower()
        assert not text.endswith(".")


def test_every_page_is_that_of_a_verdict_and_says_what_to_do() -> None:
    assert {page.stem for page in PAGES.glob("*.md")} == set(verdicts.VERDICTS)
    for page in PAGES.glob("*.md"):
        headings = [line for line in page.read_text().splitlines() if line.startswith("#")]
        assert headings == [f"# {page.stem}", "## What was seen", "## What it means", "## What to do", "## What not to do"]
