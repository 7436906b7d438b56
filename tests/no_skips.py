"""A plugin for runs that may leave nothing out (`-p tests.no_skips`): a test that is skipped has failed, with the reason of the skip.

What a machine cannot run, and need not, is not chosen there in the first place (`-m`, `collect_ignore`). It needs pytest alone.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    return counted((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, Any, Any]:
    return counted((yield))


def counted(report: Any) -> Any:
    """The report, a skip being a failure; what is expected to fail is none."""
    if report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = "left out: " + str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
    return report
