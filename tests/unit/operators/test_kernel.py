"""Both kernels give the same rows, and the frame helpers what they say."""

from __future__ import annotations

from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.operators.kernel import FrameKernel, ListKernel, in_order, keep, stack, without_flags

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
