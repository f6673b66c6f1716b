"""Panes against brute force over every window."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.operators.panes import TimeWindows
from evenflow.operators.times import FINAL, START

WINDOWS = st.builds(TimeWindows, st.integers(1, 13), st.integers(1, 13))
MOMENTS = st.lists(st.integers(-40, 40), min_size=1, max_size=12)
MANY = settings(max_examples=100, deadline=None)
ALL = range(-80, 80)


def starts_with(windows: TimeWindows, time: int) -> list[int]:
    """The starts of all windows that hold a time."""
    starts = (number * windows.every_us for number in ALL)
    return [start for start in starts if start <= time < start + windows.size_us]


@MANY
@given(windows=WINDOWS, times=MOMENTS)
def test_times_of_one_pane_lie_in_the_same_windows(windows: TimeWindows, times: list[int]) -> None:
    panes = windows.pane_of(np.array(times))
    ends = windows.pane_end(panes)
    for time, pane, end in zip(times, panes.tolist(), ends.tolist(), strict=True):
        assert pane <= time < end
        assert {tuple(starts_with(windows, t)) for t in range(pane, end)} == {tuple(starts_with(windows, time))}


@MANY
@given(windows=WINDOWS, after=st.integers(-40, 40))
def test_next_end_is_the_first_end_later(windows: TimeWindows, after: int) -> None:
    ends = [number * windows.every_us + windows.size_us for number in ALL]
    assert windows.next_end(after) == min(end for end in ends if end > after)
    assert windows.next_end(START) == START
    assert windows.next_end(FINAL) == FINAL


@MANY
@given(windows=WINDOWS, times=MOMENTS)
def test_last_end_is_that_of_the_last_window(windows: TimeWindows, times: list[int]) -> None:
    ends = windows.last_end(windows.pane_of(np.array(times))).tolist()
    for time, end in zip(times, ends, strict=True):
        holding = starts_with(windows, time)
        assert end == holding[-1] + windows.size_us if holding else end <= time


@MANY
@given(windows=WINDOWS, times=MOMENTS, after=st.integers(-45, 45) | st.none(), upto=st.integers(-45, 60) | st.none())
def test_closing_names_each_window_that_ends_then(
    windows: TimeWindows, times: list[int], after: int | None, upto: int | None
) -> None:
    low, high = START if after is None else after, FINAL if upto is None else upto
    position, starts = windows.closing(windows.pane_of(np.array(times)), low, high)
    expected = [
        (place, start)
        for place, time in enumerate(times)
        for start in starts_with(windows, time)
        if low < start + windows.size_us <= high
    ]
    assert list(zip(position.tolist(), starts.tolist(), strict=True)) == expected
