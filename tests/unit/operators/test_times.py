"""Times that stay at their ends."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evenflow.operators.times import FINAL, START, floor, later


@given(time=st.integers(START + 1, FINAL - 1), by=st.integers(-(2**63), 2**63))
def test_later_adds_and_never_leaves_the_range(time: int, by: int) -> None:
    assert START <= later(time, by) <= FINAL
    if START <= time + by <= FINAL:
        assert later(time, by) == time + by


def test_the_ends_of_time_do_not_move() -> None:
    assert later(START, 5) == later(START, -5) == START
    assert later(FINAL, 5) == later(FINAL, -5) == FINAL
    assert floor(START, 7) == START
    assert floor(FINAL, 7) == FINAL


@given(time=st.integers(-(10**12), 10**12), width=st.integers(1, 10**6))
def test_floor_is_the_bucket_s_start(time: int, width: int) -> None:
    start = floor(time, width)
    assert start % width == 0
    assert start <= time < start + width
