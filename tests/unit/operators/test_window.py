"""Tumbling, sliding and until-windows against brute force: HOP and TUMBLE of SQL, aligned to zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenflow as ef
from evenflow.operators.times import FINAL, START
from oracles import (
    CLOSING,
    CUTS,
    INCREMENTAL,
    ROW,
    Row,
    assert_rows,
    both,
    closing,
    dicts,
    drive,
    frame,
    frames,
    incremental,
    null_first,
    operator_of,
    run,
    same_key,
)

SIZES = st.tuples(st.integers(1, 12), st.integers(1, 12))


def hop(rows: Sequence[Row], size: int, every: int) -> list[tuple[int, int, list[Row]]]:
    """Every window that holds a row, by brute force over all window numbers."""
    found = []
    for number in range(-40, 60):
        start = number * every
        inside = [row for row in rows if start <= row["tuple_time"] < start + size]
        if inside:
            found.append((start, start + size, inside))
    return found


def by_key(rows: Sequence[Row], keys: Sequence[str]) -> list[tuple[tuple[Any, ...], list[Row]]]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(same_key(row[key]) for key in keys), []).append(row)
    heads = [(tuple(part[0][key] for key in keys), part) for part in groups.values()]
    return sorted(heads, key=lambda head: [null_first(value) for value in head[0]])


def expected_windows(
    rows: Sequence[Row], size: int, every: int, keys: Sequence[str], answer: Callable[[Sequence[Row]], tuple[Any, ...]]
) -> list[tuple[Any, ...]]:
    windows = sorted(hop(rows, size, every), key=lambda window: window[1])
    return [
        (end, start, end, *key, *answer(part)) for start, end, inside in windows for key, part in by_key(inside, keys)
    ]


@settings(max_examples=20, deadline=None)
@given(rows=frames(), sizes=SIZES, cuts=CUTS)
def test_sliding_windows_are_sql_hop(rows: pl.DataFrame, sizes: tuple[int, int], cuts: list[int]) -> None:
    size, every = sizes
    operator = operator_of(lambda s: s.window(size, every=every, by="k").agg(**INCREMENTAL, **CLOSING))
    assert_rows(run(operator, [rows], cuts), expected_windows(dicts(rows), size, every, ["k"], both))


@settings(max_examples=20, deadline=None)
@given(rows=frames(), size=st.integers(1, 15), cuts=CUTS)
def test_tumbling_windows_are_sql_tumble(rows: pl.DataFrame, size: int, cuts: list[int]) -> None:
    operator = operator_of(lambda s: s.window(size, by=["k", "s"]).agg(**INCREMENTAL))
    assert_rows(run(operator, [rows], cuts), expected_windows(dicts(rows), size, size, ["k", "s"], incremental))


@settings(max_examples=20, deadline=None)
@given(rows=frames(), sizes=SIZES, cuts=CUTS)
def test_windows_with_closing_expressions_alone(rows: pl.DataFrame, sizes: tuple[int, int], cuts: list[int]) -> None:
    size, every = sizes
    operator = operator_of(lambda s: s.window(size, every=every, by="s").agg(**CLOSING))
    assert_rows(run(operator, [rows], cuts), expected_windows(dicts(rows), size, every, ["s"], closing))


@settings(max_examples=20, deadline=None)
@given(rows=frames(), sizes=SIZES, cuts=CUTS)
def test_windows_without_keys(rows: pl.DataFrame, sizes: tuple[int, int], cuts: list[int]) -> None:
    size, every = sizes
    operator = operator_of(lambda s: s.window(size, every=every).agg(**INCREMENTAL, **CLOSING))
    assert_rows(run(operator, [rows], cuts), expected_windows(dicts(rows), size, every, [], both))


@settings(max_examples=20, deadline=None)
@given(rows=frames(), size=st.integers(1, 15), cuts=CUTS)
def test_float_keys_have_one_zero_and_one_nan(rows: pl.DataFrame, size: int, cuts: list[int]) -> None:
    operator = operator_of(lambda s: s.window(size, by="f").agg(n=ef.count(), xs=pl.col("x").implode()))
    expected = expected_windows(dicts(rows), size, size, ["f"], lambda part: (len(part), [row["x"] for row in part]))
    assert_rows(run(operator, [rows], cuts), expected)


def test_several_aggregates_keep_the_order_in_which_they_were_named() -> None:
    operator = operator_of(lambda s: s.window(5).agg(b=pl.len(), a=ef.count(), c=pl.col("x").max()))
    out = run(operator, [frame([{"tuple_time": 3, "x": 4}])], [])
    assert out.columns == ["tuple_time", "window_start", "window_end", "b", "a", "c"]
    assert out.schema["b"] == pl.Int64


def test_a_window_closes_when_time_reaches_its_end_and_not_before() -> None:
    operator = operator_of(lambda s: s.window(10).agg(n=ef.count()))
    rows = frame([{"tuple_time": 3}])
    before = drive(operator, [rows], [9])
    assert before.rows.is_empty()
    assert before.boundary == 10
    at_end = drive(operator, [rows], [10], before.state, 9, before.boundary)
    assert at_end.rows["tuple_time"].to_list() == [10]
    assert at_end.boundary == 20


def test_an_empty_window_gives_no_row() -> None:
    operator = operator_of(lambda s: s.window(10).agg(n=ef.count()))
    out = run(operator, [frame([{"tuple_time": 3}, {"tuple_time": 45}])], [])
    assert out.select("window_start", "n").rows() == [(0, 1), (40, 1)]


def test_no_rows_give_no_rows_and_the_right_types() -> None:
    operator = operator_of(lambda s: s.window(10, by="k").agg(**INCREMENTAL, **CLOSING))
    out = run(operator, [frame([])], [5])
    assert out.height == 0
    assert out.schema["mean"] == pl.Float64
    assert out.schema["unique"] == pl.Int64
    assert out.schema["all"] == pl.List(pl.Int64)


def test_a_window_of_windows_reads_the_inner_window_columns() -> None:
    net = ef.Network("nested")
    inner = net.source("a", ROW).window(5, by="k").agg(n=ef.count())
    outer = inner.window(20).agg(start=ef.min("window_start"), late=pl.col("window_start").max(), n=pl.len())
    outer.output("out")
    rows = frame([{"tuple_time": t, "k": 1} for t in (1, 6, 8, 12)])
    out = ef.fold(net, {"a": rows})["out"]
    assert out.select("tuple_time", "start", "late", "n").rows() == [(20, 0, 10, 3)]


def until_windows(rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    in_time = [row for row in rows if row["ends"] is not None and row["ends"] > row["tuple_time"]]
    out = []
    for end in sorted({row["ends"] for row in in_time}):
        for key, part in by_key([row for row in in_time if row["ends"] == end], ["k"]):
            out.append((end, part[0]["tuple_time"], end, *key, *both(part)))
    return out


@settings(max_examples=20, deadline=None)
@given(rows=frames(), cuts=CUTS)
def test_until_windows_close_at_the_time_in_a_column(rows: pl.DataFrame, cuts: list[int]) -> None:
    operator = operator_of(lambda s: s.window(until="ends", by="k").agg(**INCREMENTAL, **CLOSING))
    assert_rows(run(operator, [rows], cuts), until_windows(dicts(rows)))


@settings(max_examples=20, deadline=None)
@given(rows=frames(), cuts=CUTS)
def test_until_windows_with_closing_expressions_alone(rows: pl.DataFrame, cuts: list[int]) -> None:
    operator = operator_of(lambda s: s.window(until="ends", by="k").agg(last=pl.col("ends").max(), n=pl.len()))
    expected = [(row[0], row[1], row[2], row[3], row[2], row[4]) for row in until_windows(dicts(rows))]
    assert_rows(run(operator, [rows], cuts), expected)


def test_a_row_at_its_own_closing_time_belongs_to_no_window() -> None:
    operator = operator_of(lambda s: s.window(until="ends").agg(n=ef.count()))
    rows = frame([{"tuple_time": 5, "ends": 5}, {"tuple_time": 5, "ends": 6}, {"tuple_time": 7, "ends": 2}])
    assert run(operator, [rows], []).rows() == [(6, 5, 6, 1)]


@pytest.mark.parametrize(("size", "every"), [(10, 10), (10, 5), (7, 3), (2, 5)])
def test_the_horizon_of_a_time_window_is_its_size(size: int, every: int) -> None:
    operator = operator_of(lambda s: s.window(size, every=every).agg(n=ef.count()))
    assert operator.horizon == size
    assert not operator.blocking


def test_an_until_window_has_no_horizon() -> None:
    assert operator_of(lambda s: s.window(until="ends").agg(n=ef.count())).horizon is None


@pytest.mark.parametrize("fold_rows", [0, 2])
@settings(max_examples=10, deadline=None)
@given(rows=frames(), cuts=CUTS)
def test_folding_what_waits_early_changes_nothing(fold_rows: int, rows: pl.DataFrame, cuts: list[int]) -> None:
    operator = operator_of(lambda s: s.window(9, every=4, by="k").agg(**INCREMENTAL))
    usual = run(operator, [rows], cuts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evenflow.operators.window.FOLD_ROWS", fold_rows)
        assert run(operator, [rows], cuts).equals(usual)


@pytest.mark.parametrize("every", [10, 5])
def test_keys_that_come_go_and_return_between_windows(every: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of one window that the next does not have, new ones in its midst, and null among both, fold by fold."""
    monkeypatch.setattr("evenflow.operators.window.FOLD_ROWS", 0)
    keys = ["a", None, "b", "a", "c", "b", "d", None, "c", "a", "e", "b", None]
    rows = frame([{"tuple_time": 3 * i, "s": key, "x": i, "f": 0.1 * i} for i, key in enumerate(keys)])
    operator = operator_of(lambda s: s.window(10, every=every, by="s").agg(**INCREMENTAL))
    expected = expected_windows(dicts(rows), 10, every, ["s"], incremental)
    assert_rows(run(operator, [rows], range(0, 40, 2)), expected)
    assert_rows(run(operator, [rows], []), expected)


def test_as_many_closing_places_as_panes_are_not_taken_for_each_pane_once() -> None:
    """Up to 12, two windows close for the first row, one for the second and none for the third."""
    operator = operator_of(lambda s: s.window(10, every=5).agg(total=ef.sum("x")))
    rows = frame([{"tuple_time": t, "x": x} for t, x in ((1, 1), (6, 10), (11, 100))])
    closed = drive(operator, [rows], [12]).rows
    assert closed.select("window_start", "total").rows() == [(-5, 1), (0, 11)]


def test_counts_of_one_step_are_not_taken_for_those_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A column that had nulls in an earlier step and has none in this one counts less than the rows do."""
    monkeypatch.setattr("evenflow.operators.window.FOLD_ROWS", 0)
    rows = frame([{"tuple_time": t, "k": 1, "x": x} for t, x in ((0, None), (1, 4), (4, 6), (5, None), (8, 2))])
    operator = operator_of(lambda s: s.window(10).agg(n=ef.count(), xs=ef.count("x"), mean=ef.mean("x")))
    assert run(operator, [rows], [2, 5, 7]).select("n", "xs", "mean").rows() == [(5, 3, 4.0)]


def test_time_that_passes_from_start_to_final_closes_everything_once() -> None:
    operator = operator_of(lambda s: s.window(10, every=5).agg(n=ef.count()))
    rows = frame([{"tuple_time": 7}])
    once = drive(operator, [rows], [FINAL])
    assert once.rows["window_start"].to_list() == [0, 5]
    assert once.boundary == FINAL
    again = operator.step(once.state, rows.clear(), FINAL)
    assert again.rows.is_empty()
    assert operator.step(operator.initial(), rows.clear(), START).boundary == START
