"""Running aggregates against a prefix, or the last rows, of each key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenflow as ef
from oracles import CUTS, INCREMENTAL, Row, assert_rows, dicts, frame, frames, incremental, operator_of, run


def expected(rows: Sequence[Row], last: int | None, key: str | None) -> list[tuple[Any, ...]]:
    out = []
    for place, row in enumerate(rows):
        so_far = [r for r in rows[: place + 1] if not key or r[key] == row[key]]
        part = so_far if last is None else so_far[-last:]
        out.append((row["tuple_time"], *((row[key],) if key else ()), *incremental(part)))
    return out


@settings(max_examples=35, deadline=None)
@given(rows=frames(), cuts=CUTS)
def test_running_by_key(rows: pl.DataFrame, cuts: list[int]) -> None:
    operator = operator_of(lambda s: s.running(by="k").agg(**INCREMENTAL))
    assert_rows(run(operator, [rows], cuts), expected(dicts(rows), None, "k"))


@settings(max_examples=20, deadline=None)
@given(rows=frames(), cuts=CUTS)
def test_running_over_the_whole_stream(rows: pl.DataFrame, cuts: list[int]) -> None:
    operator = operator_of(lambda s: s.running().agg(**INCREMENTAL))
    assert_rows(run(operator, [rows], cuts), expected(dicts(rows), None, None))


@settings(max_examples=35, deadline=None)
@given(rows=frames(), n=st.integers(1, 5), cuts=CUTS)
def test_running_over_the_last_rows_by_key(rows: pl.DataFrame, n: int, cuts: list[int]) -> None:
    operator = operator_of(lambda s: s.running(by="k", rows=n).agg(**INCREMENTAL))
    assert_rows(run(operator, [rows], cuts), expected(dicts(rows), n, "k"))


@settings(max_examples=20, deadline=None)
@given(rows=frames(), n=st.integers(1, 5), cuts=CUTS)
def test_running_over_the_last_rows_in_small_blocks(rows: pl.DataFrame, n: int, cuts: list[int]) -> None:
    operator = operator_of(lambda s: s.running(rows=n).agg(**INCREMENTAL))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evenflow.operators.running._BLOCK_CELLS", 3)
        assert_rows(run(operator, [rows], cuts), expected(dicts(rows), n, None))


TYPES: list[tuple[pl.DataType, list[Any]]] = [
    (pl.String(), ["b", None, "a", "é", ""]),
    (pl.Boolean(), [None, False, True, False, None]),
    (pl.Date(), [None, *pl.Series([3, 1, 2]).cast(pl.Date).to_list()]),
    (pl.Enum(["low", "mid", "high"]), ["mid", "low", None, "high"]),
    (pl.Decimal(10, 2), pl.Series(["1.50", None, "-2.25", "9.75"]).str.to_decimal(scale=2).to_list()),
    (pl.Float32(), [float("nan"), 1.5, -0.5, None]),
    (pl.Binary(), [b"b", b"a", None]),
    (pl.UInt64(), [2**64 - 1, None, 0]),
]


@pytest.mark.parametrize(("dtype", "values"), TYPES, ids=lambda value: str(value)[:12])
@pytest.mark.parametrize("last", [None, 2])
def test_running_extremes_of_every_ordered_type(dtype: pl.DataType, values: list[Any], last: int | None) -> None:
    schema = {"v": dtype}
    operator = operator_of(lambda s: s.running(rows=last).agg(low=ef.min("v"), high=ef.max("v")), schema=schema)
    rows = frame([{"tuple_time": t, "v": value} for t, value in enumerate(values)], schema)
    column = rows["v"]
    out = run(operator, [rows], [2])
    for place in range(rows.height):
        begin = 0 if last is None else max(0, place + 1 - last)
        part = column.slice(begin, place + 1 - begin)
        best = (part.min(), part.max())
        if isinstance(dtype, pl.Enum):
            codes = [c for c in part.to_physical().to_list() if c is not None]
            best = tuple(dtype.categories[pick(codes)] if codes else None for pick in (min, max))  # type: ignore[assignment]
        assert_rows(out.slice(place, 1).select("low", "high"), [best])


def test_running_sum_of_durations() -> None:
    schema = {"d": pl.Duration("us")}
    operator = operator_of(lambda s: s.running().agg(total=ef.sum("d")), schema=schema)
    values = pl.Series("d", [5, None, 7], dtype=pl.Int64).cast(pl.Duration("us"))
    rows = pl.DataFrame([pl.Series("tuple_time", [1, 2, 3]), values])
    out = run(operator, [rows], [2])
    assert out["total"].to_physical().to_list() == [5, 5, 12]


def test_running_columns_are_time_keys_then_aggregates() -> None:
    operator = operator_of(lambda s: s.running(by=["s", "k"]).agg(n=ef.count()))
    out = run(operator, [frame([{"tuple_time": 1, "k": 2, "s": "a"}])], [])
    assert out.columns == ["tuple_time", "s", "k", "n"]
    assert operator.horizon is None
