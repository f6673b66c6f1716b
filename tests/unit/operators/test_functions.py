"""A user's functions over batches and rows, and what is refused about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings

import evenflow as ef
from oracles import CUTS, assert_rows, dicts, frame, frames, operator_of, run

SCHEMA = {"v": pl.Int64}


def numbers(*values: int) -> pl.DataFrame:
    return frame([{"tuple_time": t, "v": value} for t, value in enumerate(values)], SCHEMA)


@settings(max_examples=40, deadline=None)
@given(rows=frames(), cuts=CUTS)
def test_map_batches_row_for_row(rows: pl.DataFrame, cuts: list[int]) -> None:
    operator = operator_of(
        lambda s: s.map_batches(lambda f: f.select(y=pl.col("x") * 2, s="s"), schema={"y": pl.Int64, "s": pl.String})
    )
    doubled = [None if row["x"] is None else row["x"] * 2 for row in dicts(rows)]
    expected = [(row["tuple_time"], y, row["s"]) for row, y in zip(dicts(rows), doubled, strict=True)]
    assert_rows(run(operator, [rows], cuts), expected)


@settings(max_examples=40, deadline=None)
@given(rows=frames(), cuts=CUTS)
def test_map_rows_gets_and_gives_dicts(rows: pl.DataFrame, cuts: list[int]) -> None:
    def swap(row: dict[str, Any]) -> dict[str, Any]:
        return {"x": row["k"], "label": f"{row['s']}!"}

    operator = operator_of(lambda s: s.map_rows(swap, schema={"label": pl.String, "x": pl.Int64}))
    expected = [(row["tuple_time"], f"{row['s']}!", row["k"]) for row in dicts(rows)]
    assert_rows(run(operator, [rows], cuts), expected)


def test_a_batch_function_that_depends_on_the_cut_is_refused() -> None:
    operator = operator_of(lambda s: s.map_batches(lambda f: f.with_columns(pl.col("v").cum_sum())), schema=SCHEMA)
    with pytest.raises(ef.NotDeterministicError, match=r"map_batches: .*<lambda>.*cut in two"):
        run(operator, [numbers(1, 2, 3)], [])


def test_it_is_checked_again_after_the_first_batch() -> None:
    def late(rows: pl.DataFrame) -> pl.DataFrame:
        return rows if rows["v"].max() == 1 else rows.with_columns(pl.col("v").cum_sum())

    operator = operator_of(lambda s: s.map_batches(late), schema=SCHEMA)
    with pytest.raises(ef.NotDeterministicError):
        run(operator, [numbers(1, 1, 2, 3)], [2])


def test_nan_and_null_do_not_count_as_a_difference() -> None:
    schema = {"f": pl.Float64}
    operator = operator_of(lambda s: s.map_batches(lambda f: f), schema=schema)
    rows = frame([{"tuple_time": 1, "f": float("nan")}, {"tuple_time": 2, "f": None}], schema)
    assert run(operator, [rows], []).equals(rows)


BATCHES: list[tuple[Callable[..., Any], type[Exception], str]] = [
    (lambda f: f.head(1), ef.OperatorError, "got 3 rows and gave 1 rows"),
    (lambda f: f["v"], ef.OperatorError, "gave Series"),
    (lambda f: f.rename({"v": "w"}), ef.OperatorError, "gave no column 'v'"),
    (lambda f: f.with_columns(w=1), ef.OperatorError, r"added \['w'\]"),
    (lambda f: f.cast(pl.Float64), ef.OperatorError, "gave 'v' as Float64, but Int64 is declared"),
    (lambda f: 1 / 0, ef.OperatorError, "ZeroDivisionError"),
]


@pytest.mark.parametrize(("function", "error", "message"), BATCHES)
def test_a_wrong_batch_is_named(function: Callable[..., Any], error: type[Exception], message: str) -> None:
    operator = operator_of(lambda s: s.map_batches(function), schema=SCHEMA)
    with pytest.raises(error, match=message) as caught:
        run(operator, [numbers(1, 2, 3)], [])
    assert "map_batches" in str(caught.value)
    assert "test_functions.py" in str(caught.value)


ROWS: list[tuple[Callable[..., Any], str]] = [
    (lambda row: None, "it must give a dict"),
    (lambda row: {}, "left out the column 'v'"),
    (lambda row: {"v": 1, "w": 2}, "added the column 'w'"),
    (lambda row: {"v": "text"}, "gave values that are not v: Int64"),
    (lambda row: {"v": row["nope"]}, r"KeyError\('nope'\).*on the row \{'v': 1\}"),
]


@pytest.mark.parametrize(("function", "message"), ROWS)
def test_a_wrong_row_is_named(function: Callable[..., Any], message: str) -> None:
    operator = operator_of(lambda s: s.map_rows(function), schema=SCHEMA)
    with pytest.raises(ef.OperatorError, match=message):
        run(operator, [numbers(1)], [])


def test_no_rows_call_nothing() -> None:
    def never(rows: Any) -> Any:
        raise AssertionError("called")

    for build in (lambda s: s.map_batches(never), lambda s: s.map_rows(never)):
        out = run(operator_of(build, schema=SCHEMA), [numbers()], [5])
        assert out.schema == numbers().schema
