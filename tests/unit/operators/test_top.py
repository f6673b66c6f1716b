"""Top against a sort of each time's, or each window's, rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

import evenflow as ef
from oracles import CUTS, Row, assert_rows, dicts, frame, frames, null_first, operator_of, run

CHOICES = st.fixed_dictionaries({"k": st.integers(1, 3), "ties": st.booleans(), "ascending": st.booleans()})


def best(rows: Sequence[Row], by: str, k: int, ties: bool, ascending: bool) -> list[Row]:
    """The best ``k``, best first and of equals the earlier; with ties also those that equal the last of them."""
    ranked = [row for row in rows if row[by] is not None and not (isinstance(row[by], float) and math.isnan(row[by]))]
    ranked.sort(key=lambda row: row[by], reverse=not ascending)
    chosen = ranked[:k]
    if ties and len(chosen) == k:
        chosen += [row for row in ranked[k:] if row[by] == chosen[-1][by]]
    return chosen


def grouped(rows: Sequence[Row], column: str) -> list[list[Row]]:
    """The rows by value of a column, in the order of the values."""
    values = sorted({row[column] for row in rows}, key=null_first)
    return [[row for row in rows if row[column] == value] for value in values]


@settings(max_examples=35, deadline=None)
@given(rows=frames(20), choice=CHOICES, by=st.sampled_from(["x", "f", "s"]), cuts=CUTS)
def test_top_of_each_time(rows: pl.DataFrame, choice: dict[str, Any], by: str, cuts: list[int]) -> None:
    crowded = rows.with_columns(pl.col("tuple_time") // 8 * 8)
    operator = operator_of(lambda s: s.top(choice["k"], by=by, ties=choice["ties"], ascending=choice["ascending"]))
    expected = [
        tuple(row.values()) for part in grouped(dicts(crowded), "tuple_time") for row in best(part, by, **choice)
    ]
    assert_rows(run(operator, [crowded], cuts), expected)


@settings(max_examples=35, deadline=None)
@given(rows=frames(20), choice=CHOICES, cuts=CUTS)
def test_top_per_value_of_a_column(rows: pl.DataFrame, choice: dict[str, Any], cuts: list[int]) -> None:
    crowded = rows.with_columns(pl.col("tuple_time") // 20 * 20)
    k, ties, ascending = choice["k"], choice["ties"], choice["ascending"]
    operator = operator_of(lambda s: s.top(k, by="x", per="k", ties=ties, ascending=ascending))
    expected = [
        tuple(row.values())
        for at_one_time in grouped(dicts(crowded), "tuple_time")
        for part in grouped(at_one_time, "k")
        for row in best(part, "x", **choice)
    ]
    assert_rows(run(operator, [crowded], cuts), expected)


@settings(max_examples=30, deadline=None)
@given(rows=frames(16), choice=CHOICES, size=st.integers(1, 12), every=st.integers(1, 12), cuts=CUTS)
def test_top_of_a_window_gives_the_rows_themselves(
    rows: pl.DataFrame, choice: dict[str, Any], size: int, every: int, cuts: list[int]
) -> None:
    k, ties, ascending = choice["k"], choice["ties"], choice["ascending"]
    operator = operator_of(lambda s: s.window(size, every=every).top(k, by="x", ties=ties, ascending=ascending))
    expected = []
    for start in (number * every for number in range(-40, 60)):
        inside = [row for row in dicts(rows) if start <= row["tuple_time"] < start + size]
        end = start + size
        expected += [(end, start, end, *list(row.values())[1:]) for row in best(inside, "x", **choice)]
    assert_rows(run(operator, [rows], cuts), sorted(expected, key=lambda row: row[0]))


@settings(max_examples=25, deadline=None)
@given(rows=frames(16), choice=CHOICES, cuts=CUTS)
def test_top_per_key_of_an_until_window(rows: pl.DataFrame, choice: dict[str, Any], cuts: list[int]) -> None:
    k, ties, ascending = choice["k"], choice["ties"], choice["ascending"]
    operator = operator_of(lambda s: s.window(until="ends", by="k").top(k, by="f", ties=ties, ascending=ascending))
    in_time = [row for row in dicts(rows) if row["ends"] is not None and row["ends"] > row["tuple_time"]]
    expected = []
    for window in grouped(in_time, "ends"):
        end = window[0]["ends"]
        for part in grouped(window, "k"):
            chosen = best(part, "f", **choice)
            expected += [(end, *(row[name] for name in ("k", "s", "x", "f", "ends"))) for row in chosen]
    out = run(operator, [rows], cuts)
    assert_rows(out.drop("window_start", "window_end"), expected)
    assert (out["window_end"] == out["tuple_time"]).all()


def test_an_until_window_s_top_rows_carry_the_window_s_start() -> None:
    operator = operator_of(lambda s: s.window(until="ends").top(1, by="x"))
    rows = frame([{"tuple_time": 1, "x": 2, "ends": 9}, {"tuple_time": 4, "x": 7, "ends": 9}])
    out = run(operator, [rows], [3])
    assert out.select("window_start", "window_end", "x").rows() == [(1, 9, 7)]


def test_the_per_columns_are_what_a_top_is_partitioned_by() -> None:
    assert operator_of(lambda s: s.top(1, by="x", per="k")).keys == ("k",)
    assert operator_of(lambda s: s.window(5, by="k").top(1, by="x")).keys == ("k",)


def test_top_behind_a_window_ranks_the_windows_of_one_end() -> None:
    net = ef.Network("top")
    counted = net.source("a", {"k": pl.Int64}).window(10, by="k").agg(n=ef.count())
    counted.top(1, by="n").output("busiest")
    rows = frame([{"tuple_time": t, "k": k} for t, k in [(1, 1), (2, 2), (3, 2), (11, 3), (12, 1)]], {"k": pl.Int64})
    out = ef.fold(net, {"a": rows})["busiest"]
    assert out.select("tuple_time", "k", "n").rows() == [(10, 2, 2), (20, 1, 1)]
