"""SUnion: complete buckets leave once, in order; tentative rows can be looked at and are superseded."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenflow as ef
from evenflow.operators.kernel import FrameKernel, ListKernel
from evenflow.operators.sunion import SUnion
from evenflow.operators.times import FINAL, START

Feed = list[tuple[int, int, list[int]]]


def union(inputs: int = 2, bucket: int = 10) -> SUnion[list[Any]]:
    return SUnion(ListKernel(), [[] for _ in range(inputs)], bucket)


@st.composite
def feeds(draw: st.DrawFn) -> Feed:
    """Deliveries ``(input, boundary, times)`` that keep every promise."""
    boundaries = [-30, -30, -30]
    feed: Feed = []
    for _ in range(draw(st.integers(0, 12))):
        place = draw(st.integers(0, 2))
        boundary = boundaries[place] + draw(st.integers(0, 25))
        times = draw(st.lists(st.integers(boundaries[place], boundary + 5), max_size=4))
        feed.append((place, boundary, times))
        boundaries[place] = boundary
    return feed


@settings(max_examples=80, deadline=None)
@given(feed=feeds(), bucket=st.integers(1, 17))
def test_every_row_leaves_once_with_its_complete_bucket(feed: Feed, bucket: int) -> None:
    sunion, arrived = union(3, bucket), [[], [], []]  # type: ignore[var-annotated]
    taken: list[list[Any]] = [[], [], []]
    boundaries = [START] * 3
    for number, (place, boundary, times) in enumerate(feed):
        rows = [(time, number, i) for i, time in enumerate(times)]
        arrived[place] += rows
        boundaries[place] = boundary
        sunion.insert(place, rows, boundary)
        upto = sunion.complete_upto
        lowest = min(boundaries)
        assert upto == (START if lowest == START else lowest - lowest % bucket)
        for mine, part in zip(taken, sunion.take(upto), strict=True):
            assert all(row[0] < upto for row in part)
            mine += part
    for mine, theirs in zip(taken, arrived, strict=True):
        assert sorted(mine) == sorted(row for row in theirs if row[0] < sunion.cursor)
        assert [row[0] // bucket for row in mine] == sorted(row[0] // bucket for row in mine)
    assert sunion.rows == sum(map(len, arrived)) - sum(map(len, taken))


def test_an_input_that_never_spoke_completes_nothing() -> None:
    sunion = union()
    sunion.insert(0, [(3, "a")], 100)
    assert sunion.complete_upto == START
    with pytest.raises(ef.InvariantError, match="complete only up to"):
        sunion.take(10)


def test_a_bucket_is_complete_when_the_last_boundary_reaches_its_end() -> None:
    sunion = union()
    sunion.insert(0, [(3, "a")], 30)
    sunion.insert(1, [], 9)
    assert sunion.complete_upto == 0
    sunion.insert(1, [(9, "b")], 10)
    assert sunion.complete_upto == 10
    assert sunion.take(10) == ([(3, "a")], [(9, "b")])
    assert sunion.take(10) == ([], [])


def test_the_final_boundary_completes_everything() -> None:
    sunion = union()
    sunion.insert(0, [(3, "a"), (10**15, "z")], FINAL)
    sunion.insert(1, [(-7, "b")], FINAL)
    assert sunion.complete_upto == FINAL
    assert sunion.take(FINAL) == ([(3, "a"), (10**15, "z")], [(-7, "b")])
    assert sunion.rows == 0


def test_several_deliveries_of_a_bucket_keep_their_order() -> None:
    sunion = union(1)
    for boundary, row in [(2, (1, "a")), (2, (2, "b")), (10, (2, "c"))]:
        sunion.insert(0, [row], boundary)
    assert sunion.take(10) == ([(1, "a"), (2, "b"), (2, "c")],)


def test_a_boundary_that_falls_is_an_error() -> None:
    sunion = union()
    sunion.insert(0, [], 20)
    with pytest.raises(ef.InvariantError, match="input 0 fell from 20 to 19"):
        sunion.insert(0, [], 19)


def test_a_stable_row_from_before_its_boundary_is_an_error() -> None:
    sunion = union()
    sunion.insert(1, [], 20)
    with pytest.raises(ef.InvariantError, match="input 1 sent a stable row from before its boundary 20"):
        sunion.insert(1, [(19, "late"), (21, "fine")], 30)
    sunion.insert(0, [], 100)
    assert sunion.complete_upto == 20


def test_tentative_rows_are_seen_by_peek_and_never_taken() -> None:
    sunion = union()
    sunion.insert(0, [(3, "stable")], 20)
    sunion.insert_tentative(1, [(4, "guess"), (14, "later")], 20)
    assert sunion.complete_upto == START
    assert sunion.peek(START, 10) == ([(3, "stable")], [(4, "guess")])
    assert sunion.peek(10, 20) == ([], [(14, "later")])
    assert sunion.peek(START, 10) == ([(3, "stable")], [(4, "guess")])
    assert sunion.tentative_boundaries == [START, 20]
    sunion.insert(1, [(5, "sure")], 20)
    assert sunion.take(20) == ([(3, "stable")], [(5, "sure")])


def test_a_stable_boundary_supersedes_the_tentative_rows_before_it() -> None:
    sunion = union(1)
    sunion.insert_tentative(0, [(3, "x"), (12, "y"), (17, "z")], 20)
    sunion.insert(0, [(4, "s")], 15)
    assert sunion.peek(START, 20) == ([(4, "s"), (17, "z")],)
    sunion.insert(0, [], 20)
    assert sunion.peek(START, 30) == ([(4, "s")],)
    assert sunion.rows == 1


def test_tentative_rows_that_are_known_already_are_skipped() -> None:
    sunion = union(1)
    sunion.insert(0, [(3, "s")], 5)
    sunion.insert_tentative(0, [(4, "old"), (6, "new")], 8)
    sunion.insert_tentative(0, [(7, "again"), (8, "fresh")], 6)
    assert sunion.peek(START, 10) == ([(3, "s"), (6, "new"), (8, "fresh")],)
    assert sunion.tentative_boundaries == [8]


def test_peek_from_the_middle_of_a_bucket_sees_the_whole_bucket() -> None:
    sunion = union(1)
    sunion.insert(0, [(-15, "a"), (-5, "b"), (5, "c")], 6)
    assert sunion.peek(-4, 1) == ([(-5, "b"), (5, "c")],)


def test_frames_are_bucketed_like_lists() -> None:
    empty = pl.DataFrame(schema={"tuple_time": pl.Int64})
    sunion = SUnion(FrameKernel(), [empty, empty], 10)
    sunion.insert(0, pl.DataFrame({"tuple_time": [-1, 0, 25]}), 30)
    sunion.insert(1, empty, 20)
    left, right = sunion.take(20)
    assert left["tuple_time"].to_list() == [-1, 0]
    assert right.schema == empty.schema
    assert sunion.rows == 1


def test_clearing_short_of_the_tentative_boundary_keeps_the_rest() -> None:
    sunion = union(1)
    sunion.insert_tentative(0, [(3, "x"), (12, "y"), (17, "z")], 20)
    sunion.clear_tentative(0, 15)
    assert sunion.peek(START, 30) == ([(17, "z")],)
    assert sunion.tentative_boundaries == [20]
    sunion.insert_tentative(0, [(16, "known"), (21, "fresh")], 25)
    assert sunion.peek(START, 30) == ([(17, "z"), (21, "fresh")],)


def test_clearing_all_that_is_tentative_lets_the_lane_begin_anew() -> None:
    sunion = union(1)
    sunion.insert(0, [(1, "s")], 2)
    sunion.insert_tentative(0, [(3, "x"), (12, "y")], 20)
    sunion.clear_tentative(0, 20)
    assert sunion.peek(START, 30) == ([(1, "s")],)
    assert sunion.tentative_boundaries == [START]
    assert sunion.rows == 1
    sunion.insert_tentative(0, [(1, "stable knows"), (4, "again")], 6)
    assert sunion.peek(START, 30) == ([(1, "s"), (4, "again")],)


def test_clearing_one_input_leaves_the_others() -> None:
    sunion = union(2)
    sunion.insert_tentative(0, [(3, "x")], 10)
    sunion.insert_tentative(1, [(4, "y")], 10)
    sunion.clear_tentative(0, FINAL)
    assert sunion.peek(START, 10) == ([], [(4, "y")])
    assert sunion.tentative_boundaries == [START, 10]


def test_an_input_has_reached_the_further_of_its_two_boundaries() -> None:
    sunion = union(2)
    assert sunion.reached(0) == START
    sunion.insert_tentative(0, [], 30)
    sunion.insert(0, [], 10)
    sunion.insert(1, [], 40)
    sunion.insert_tentative(1, [], 20)
    assert [sunion.reached(place) for place in (0, 1)] == [30, 40]


def test_ready_stops_behind_the_bucket_that_fills_a_slice() -> None:
    sunion = union(2)
    sunion.insert(0, [(1, "a"), (2, "b"), (11, "c"), (35, "d")], 45)
    sunion.insert_tentative(1, [(12, "guess"), (45, "beyond")], 50)
    sunion.insert(1, [(3, "e")], 42)
    assert [sunion.ready(n) for n in (None, 1, 3, 4, 5, 6)] == [40, 10, 10, 20, 40, 40]
    sunion.take(10)
    assert [sunion.ready(n) for n in (1, 2, 3)] == [20, 40, 40]
    sunion.take(40)
    assert sunion.ready(1) == sunion.cursor == 40


def test_ready_does_not_count_tentative_rows_nor_incomplete_buckets() -> None:
    sunion = union(2)
    sunion.insert(0, [(1, "a"), (11, "b")], 30)
    sunion.insert_tentative(1, [(2, "x"), (3, "y"), (4, "z")], 10)
    assert sunion.ready(1) == START
    sunion.insert(1, [], 1)
    assert sunion.ready(1) == 0
    sunion.insert(1, [], 25)
    assert sunion.ready(2) == 20
