"""Append-only tables: every row once, in order, and few segments."""

from __future__ import annotations

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.operators.segments import SMALL_ROWS, SMALL_SEGMENTS_MAX, append, count


@settings(max_examples=60, deadline=None)
@given(sizes=st.lists(st.integers(0, 9), max_size=150))
def test_rows_stay_in_order_and_segments_stay_few(sizes: list[int]) -> None:
    segments: tuple[pl.DataFrame, ...] = ()
    total = 0
    for size in sizes:
        segments = append(segments, pl.DataFrame({"a": range(total, total + size)}))
        total += size
    assert [value for segment in segments for value in segment["a"]] == list(range(total))
    assert count(segments) == total
    assert len(segments) < SMALL_SEGMENTS_MAX


def test_older_segments_are_shared_and_not_changed() -> None:
    big = pl.DataFrame({"a": range(SMALL_ROWS)})
    before = append((), big)
    after = append(before, pl.DataFrame({"a": [1]}))
    assert after[0] is before[0]
    assert big.height == SMALL_ROWS
    assert append(after, pl.DataFrame({"a": []}, schema={"a": pl.Int64})) is after


def test_large_segments_are_not_joined() -> None:
    big = pl.DataFrame({"a": range(SMALL_ROWS - 10)})
    assert len(append(append((), big), big)) == 2
