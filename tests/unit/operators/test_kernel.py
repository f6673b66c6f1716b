"""Both kernels give the same rows, and the frame helpers what they say."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.operators.kernel import FrameKernel, ListKernel, in_order, keep, stack, without_flags
from evenflow.operators.times import FINAL, START

ROWS = st.lists(st.tuples(st.integers(-30, 30), st.integers(0, 99)), max_size=12)
FRAMES, LISTS = FrameKernel(), ListKernel()
MANY = settings(max_examples=60, deadline=None)


def frame(rows: list[Any]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={"tuple_time": pl.Int64, "v": pl.Int64}, orient="row")


@MANY
@given(rows=ROWS, n=st.integers(0, 14))
def test_count_and_skip_agree(rows: list[Any], n: int) -> None:
    assert FRAMES.count(frame(rows)) == LISTS.count(rows) == len(rows)
    assert FRAMES.skip(frame(rows), n).rows() == LISTS.skip(rows, n) == rows[n:]


@MANY
@given(rows=ROWS, ordered=st.booleans(), time=st.integers(-32, 32))
def test_split_agrees(rows: list[Any], ordered: bool, time: int) -> None:
    rows = sorted(rows, key=lambda row: row[0]) if ordered else rows
    early, rest = FRAMES.split(frame(rows), time)
    assert (early.rows(), rest.rows()) == LISTS.split(rows, time)
    assert early.rows() == [row for row in rows if row[0] < time]
    assert rest.rows() == [row for row in rows if row[0] >= time]


@MANY
@given(rows=ROWS, width=st.integers(1, 20))
def test_buckets_agree(rows: list[Any], width: int) -> None:
    buckets = [(index, part.rows()) for index, part in FRAMES.buckets(frame(rows), width)]
    assert buckets == list(LISTS.buckets(rows, width))
    indices = sorted({row[0] // width for row in rows})
    assert buckets == [(index, [row for row in rows if row[0] // width == index]) for index in indices]


@MANY
@given(parts=st.lists(ROWS, min_size=1, max_size=4))
def test_concat_and_merge_agree(parts: list[list[Any]]) -> None:
    parts_of_frames = [frame(part) for part in parts]
    assert FRAMES.concat(parts_of_frames).rows() == LISTS.concat(parts)
    merged = FRAMES.merge(parts_of_frames).rows()
    assert merged == LISTS.merge(parts)
    places = [(row[0], p, i, row) for p, part in enumerate(parts) for i, row in enumerate(part)]
    assert merged == [place[3] for place in sorted(places, key=lambda place: place[:3])]


@MANY
@given(rows=ROWS)
def test_in_order_breaks_ties_only_between_equal_times(rows: list[Any]) -> None:
    assert in_order(frame(rows)).rows() == sorted(rows, key=lambda row: row[0])
    broken = in_order(frame(rows), [-pl.col("v")]).rows()
    assert broken == sorted(rows, key=lambda row: (row[0], -row[1]))


def test_stack_gives_one_chunk_and_keep_drops_nulls_of_the_mask() -> None:
    both = stack([frame([(1, 1)]), frame([]), frame([(2, 2)])])
    assert both.n_chunks() == 1
    assert both.rows() == [(1, 1), (2, 2)]
    assert stack([frame([]), frame([])]).schema == frame([]).schema
    assert keep(both, pl.Series([None, True])).rows() == [(2, 2)]


def test_without_flags_forgets_that_a_column_is_sorted() -> None:
    rows = frame([(1, 3), (2, 1)]).with_columns(pl.col("tuple_time").set_sorted(), s=pl.lit("x").cast(pl.Categorical))
    plain = without_flags(rows)
    assert not plain["tuple_time"].flags["SORTED_ASC"]
    assert plain.equals(rows)
    assert plain.schema == rows.schema


@MANY
@given(rows=ROWS, n=st.integers(0, 14))
def test_head_earliest_and_latest_agree(rows: list[Any], n: int) -> None:
    assert FRAMES.head(frame(rows), n).rows() == LISTS.head(rows, n) == rows[:n]
    stamps = [row[0] for row in rows]
    assert FRAMES.earliest(frame(rows)) == LISTS.earliest(rows) == min([*stamps, FINAL])
    assert FRAMES.latest(frame(rows)) == LISTS.latest(rows) == max([*stamps, START])


@MANY
@given(mine=ROWS, theirs=ROWS)
def test_same_agrees_and_minds_the_order(mine: list[Any], theirs: list[Any]) -> None:
    assert FRAMES.same(frame(mine), frame(theirs)) == LISTS.same(mine, theirs) == (mine == theirs)
    assert FRAMES.same(frame(mine), frame(list(mine)))
    assert FRAMES.same(frame(mine), frame(mine[::-1])) == LISTS.same(mine, mine[::-1])


def test_same_does_not_mind_chunks_nor_flags() -> None:
    whole = frame([(1, 1), (2, 2), (3, 3)])
    pieces = whole.head(1).vstack(whole.slice(1))
    assert pieces.n_chunks() == 2
    assert FRAMES.same(whole, pieces)
    assert FRAMES.same(whole.with_columns(pl.col("tuple_time").set_sorted()), whole)


NAN = float("nan")
NAN_BITS = (0x7FF8000000000000, 0x7FF8000000000001)
FLOATS = pl.List(pl.Float64)
POINT = pl.Struct({"x": pl.Float64, "n": pl.Int64})
UNEQUAL: list[tuple[str, Any, Any, Any]] = [
    ("zeros", pl.Float64, 0.0, -0.0),
    ("zeros of 32 bits", pl.Float32, 0.0, -0.0),
    ("nan and number", pl.Float64, NAN, 1.0),
    ("null and zero", pl.Float64, None, 0.0),
    ("null and nan", pl.Float64, None, NAN),
    ("null and number", pl.Int64, None, 0),
    ("null and text", pl.String, None, ""),
    ("zeros in a list", FLOATS, [1.0, 0.0], [1.0, -0.0]),
    ("order in a list", FLOATS, [1.0, 2.0], [2.0, 1.0]),
    ("null and empty list", FLOATS, None, []),
    ("empty list and list of null", FLOATS, [], [None]),
    ("zeros in an array", pl.Array(pl.Float64, 2), [0.0, 1.0], [-0.0, 1.0]),
    ("zeros in a struct", POINT, {"x": 0.0, "n": 1}, {"x": -0.0, "n": 1}),
    ("zeros in a list of structs", pl.List(POINT), [{"x": 0.0, "n": 1}], [{"x": -0.0, "n": 1}]),
    ("zeros in a struct of lists", pl.Struct({"l": FLOATS}), {"l": [0.0]}, {"l": [-0.0]}),
    ("zeros in a list of lists", pl.List(FLOATS), [[], [0.0]], [[], [-0.0]]),
]


def column(dtype: Any, *values: Any) -> pl.DataFrame:
    times = pl.Series("tuple_time", [1] * len(values), pl.Int64)
    return pl.DataFrame([times, pl.Series("v", list(values), dtype, strict=False)])


@pytest.mark.parametrize(("dtype", "mine", "theirs"), [case[1:] for case in UNEQUAL], ids=[c[0] for c in UNEQUAL])
def test_same_is_to_the_bit(dtype: Any, mine: Any, theirs: Any) -> None:
    assert FRAMES.same(column(dtype, mine), column(dtype, mine))
    assert FRAMES.same(column(dtype, theirs), column(dtype, theirs))
    assert not FRAMES.same(column(dtype, mine), column(dtype, theirs))
    assert not FRAMES.same(column(dtype, theirs, mine), column(dtype, theirs, theirs))


def test_same_tells_one_nan_from_another() -> None:
    mine, theirs = (pl.Series("v", np.array([bits], np.uint64).view(np.float64)) for bits in NAN_BITS)
    stamps = pl.Series("tuple_time", [1])
    assert FRAMES.same(pl.DataFrame([stamps, mine]), pl.DataFrame([stamps, mine.clone()]))
    assert not FRAMES.same(pl.DataFrame([stamps, mine]), pl.DataFrame([stamps, theirs]))


def test_no_rows_are_the_same_as_no_rows() -> None:
    assert FRAMES.same(column(FLOATS), column(FLOATS))
    assert not FRAMES.same(column(FLOATS), column(FLOATS, [1.0]))
