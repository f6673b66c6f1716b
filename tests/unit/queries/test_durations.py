"""Durations as users write them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenflow as ef
from evenflow.operators.times import readable
from evenflow.queries.durations import microseconds

GOOD = {
    "500ms": 500_000,
    "0.05s": 50_000,
    "1.5s": 1_500_000,
    " 2 m ": 120_000_000,
    "10min": 600_000_000,
    "1h": 3_600_000_000,
    "1d": 86_400_000_000,
    "7us": 7,
    "7µs": 7,
    "0.000001s": 1,
}


@pytest.mark.parametrize("text", GOOD)
def test_words(text: str) -> None:
    assert microseconds(text, "x") == GOOD[text]


def test_other_types() -> None:
    assert microseconds(timedelta(milliseconds=3), "x") == 3000
    assert microseconds(42, "x") == 42
    assert microseconds(0, "x", zero=True) == 0


BAD = ["", "5", "s", "-1s", "1 week", "1.5", "1e3s", "0.5us", 1.5, None, True, -1, 0, "0s", timedelta(0), timedelta(-1)]


@pytest.mark.parametrize("value", BAD, ids=repr)
def test_what_is_no_duration_is_named(value: Any) -> None:
    with pytest.raises(ef.DeclarationError, match="window: size="):
        microseconds(value, "window: size")


def test_a_duration_longer_than_time_itself_is_refused() -> None:
    with pytest.raises(ef.DeclarationError, match="window: size="):
        microseconds("200000000d", "window: size")


@given(us=st.integers(1, 10**13))
def test_readable_reads_back(us: int) -> None:
    assert microseconds(readable(us), "x") == us
