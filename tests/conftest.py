"""Settings for all tests: in CI hypothesis draws the same examples every time, elsewhere new ones."""

from __future__ import annotations

import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("ci", derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
settings.register_profile("local", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What the random schedules of the simulation reached."""
    tally: Counter[str] = Counter()
    for test in terminalreporter.getreports("passed"):
        tally.update(dict(test.user_properties).get("tally", {}))
    if tally:
        terminalreporter.section("simulated schedules")
        for what, count in sorted(tally.items()):
            terminalreporter.write_line(f"{count:6d}  {what}")
