"""Windows of a number of rows against a counter for each key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

import evenflow as ef
from evenflow.operators.times import FINAL
from oracles import CLOSING, CUTS, INCREMENTAL, Row, assert_rows, both, closing, dicts, frame, frames, operator_of, run


def expected(rows: Sequence[Row], n: int, key: str | None, answer: Any) -> list[tuple[Any, ...]]:
    """Windows in the order of the rows that fill them."""
    held: dict[Any, list[Row]] = {}
    out = []
    for row in rows:
        value = row[key] if key else None
        part = held.setdefault(value, [])
        part.append(row)
        if len(part) == n:
            times = [r["tuple_time"] for r in part]
            out.append((times[-1], times[0], times[-1], *((value,) if key else ()), *answer(part)))
            held[value] = []
    return out


@settings(max_examples=35, deadline=None)
@given(rows=frames(20), n=st.integers(1, 5), cuts=CUTS)
def test_count_windows_by_key(rows: pl.DataFrame, n: int, cuts: list[int]) -> None:
    operator = operator_of(lambda s: s.window(rows=n, by="k").agg(**INCREMENTAL, **CLOSING))
    assert_rows(run(operator, [rows], cuts), expected(dicts(rows), n, "k", both))


@settings(max_examples=20, deadline=None)
@given(rows=frames(20), n=st.integers(1, 5), cuts=CUTS)
def test_count_windows_of_the_whole_stream(rows: pl.DataFrame, n: int, cuts: list[int]) -> None:
    operator = operator_of(lambda s: s.window(rows=n).agg(**INCREMENTAL, **CLOSING))
    assert_rows(run(operator, [rows], cuts), expected(dicts(rows), n, None, both))


@settings(max_examples=20, deadline=None)
@given(rows=frames(20), n=st.integers(1, 5), cuts=CUTS)
def test_count_windows_with_closing_expressions_alone(rows: pl.DataFrame, n: int, cuts: list[int]) -> None:
    operator = operator_of(lambda s: s.window(rows=n, by="s").agg(**CLOSING))
    assert_rows(run(operator, [rows], cuts), expected(dicts(rows), n, "s", closing))


def test_windows_that_fill_at_one_time_come_in_the_order_of_their_last_rows() -> None:
    operator = operator_of(lambda s: s.window(rows=2, by="k").agg(n=ef.count()))
    rows = frame([{"tuple_time": 5, "k": k} for k in (2, 1, 1, 2)])
    assert run(operator, [rows], []).select("k", "n").rows() == [(1, 2), (2, 2)]


def test_a_window_that_is_not_full_never_closes() -> None:
    operator = operator_of(lambda s: s.window(rows=3).agg(n=ef.count()))
    rows = frame([{"tuple_time": t} for t in range(5)])
    assert run(operator, [rows], [2]).rows() == [(2, 0, 2, 3)]


def test_its_boundary_is_the_input_s_and_it_has_no_horizon() -> None:
    operator = operator_of(lambda s: s.window(rows=3).agg(n=ef.count()))
    assert operator.step(operator.initial(), frame([]), 17).boundary == 17
    assert operator.step(operator.initial(), frame([{"tuple_time": 1}]), FINAL).boundary == FINAL
    assert operator.horizon is None
