"""Distinct against a dict of when each value last came."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.operators.times import FINAL
from oracles import CUTS, Row, assert_rows, dicts, drive, frame, frames, operator_of, run, same_key


def expected(rows: Sequence[Row], on: Sequence[str], within: int) -> list[tuple[Any, ...]]:
    last: dict[tuple[Any, ...], int] = {}
    out = []
    for row in rows:
        value = tuple(same_key(row[name]) for name in on)
        if value not in last or row["tuple_time"] - last[value] > within:
            out.append(tuple(row.values()))
        last[value] = row["tuple_time"]
    return out


@settings(max_examples=60, deadline=None)
@given(rows=frames(20), within=st.integers(1, 15), cuts=CUTS)
def test_distinct_on_one_column(rows: pl.DataFrame, within: int, cuts: list[int]) -> None:
    operator = operator_of(lambda s: s.distinct("k", within=within))
    assert_rows(run(operator, [rows], cuts), expected(dicts(rows), ["k"], within))


@settings(max_examples=60, deadline=None)
@given(rows=frames(20, keys=2), within=st.integers(1, 40), cuts=CUTS)
def test_distinct_on_floats_and_strings(rows: pl.DataFrame, within: int, cuts: list[int]) -> None:
    operator = operator_of(lambda s: s.distinct(["f", "s"], within=within))
    assert_rows(run(operator, [rows], cuts), expected(dicts(rows), ["f", "s"], within))


def test_rows_that_were_dropped_count_as_seen() -> None:
    operator = operator_of(lambda s: s.distinct("k", within=5))
    rows = frame([{"tuple_time": t, "k": 1} for t in (0, 5, 10, 15, 21)])
    assert run(operator, [rows], [6, 12])["tuple_time"].to_list() == [0, 21]


def test_the_bound_is_inclusive_across_a_cut() -> None:
    operator = operator_of(lambda s: s.distinct("k", within=5))
    rows = frame([{"tuple_time": 0, "k": 1}, {"tuple_time": 5, "k": 1}, {"tuple_time": 11, "k": 1}])
    assert run(operator, [rows], [5, 10, 11])["tuple_time"].to_list() == [0, 11]


def test_what_can_hold_back_no_more_rows_is_forgotten() -> None:
    operator = operator_of(lambda s: s.distinct("k", within=5))
    rows = frame([{"tuple_time": t, "k": t} for t in range(20)])
    state = drive(operator, [rows], [20]).state
    assert sum(segment.height for segment in state.seen) == 5
    assert operator.step(state, rows.clear(), FINAL).state.seen == ()
    assert operator.horizon == 5
