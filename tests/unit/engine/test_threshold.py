"""X, α and the margin."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenflow as ef
from evenflow.engine.threshold import REDO_SHARE, SLICES, Threshold, Timing

DEFAULT = Timing(100_000, 100_000, 10_000, 1_000)


def test_what_the_margin_must_cover() -> None:
    assert Timing(1, 20, 300, 4_000).needed_us == 1 + 20 + 600 + 4_000
    assert Timing(1, 20, 300, 4_000).apart_us == 320


def test_a_long_x_is_held_for_nine_tenths() -> None:
    threshold = Threshold.fit("site", 10_000_000, DEFAULT)
    assert (threshold.hold_us, threshold.margin_us) == (9_000_000, 1_000_000)
    assert (threshold.slice_us(10**9), threshold.slice_us(100_000)) == (125_000, 100_000)


def test_a_short_x_gives_up_holding_for_the_margin() -> None:
    threshold = Threshold.fit("site", 1_000_000, DEFAULT)
    assert threshold.margin_us == 294_667  # 221 ms and a slice of a quarter
    assert threshold.margin_us - SLICES * threshold.slice_us(10**9) >= DEFAULT.needed_us


def test_an_x_that_leaves_nothing_to_wait_with_says_what_to_do() -> None:
    least = 294_667 + 110_000
    assert Threshold.fit("site", least, DEFAULT).hold_us == 110_000
    with pytest.raises(ef.DeclarationError) as caught:
        Threshold.fit("site", least - 1, DEFAULT)
    text = str(caught.value)
    assert "node 'site': x=404.666ms leaves no time to wait for an input" in text
    assert "bucket 100ms, boundaries every 100ms, links 10ms and processing 1ms need a margin of 294.667ms" in text
    assert "come up to 110ms apart; make x at least 404.667ms" in text


@given(
    x_us=st.integers(1, 10_000_000),
    timing=st.builds(Timing, *[st.integers(1, 300_000)] * 2, *[st.integers(0, 50_000)] * 2),
)
def test_the_margin_always_holds_the_needs_and_one_slice(x_us: int, timing: Timing) -> None:
    try:
        threshold = Threshold.fit("n", x_us, timing)
    except ef.DeclarationError:
        assert (
            x_us - timing.needed_us * REDO_SHARE / (REDO_SHARE - 1) < timing.apart_us + 1
            or 0.9 * x_us < timing.apart_us
        )
        return
    assert threshold.hold_us + threshold.margin_us == x_us
    assert threshold.hold_us >= timing.apart_us
    assert threshold.hold_us <= 0.9 * x_us
    assert threshold.margin_us * (REDO_SHARE - 1) >= timing.needed_us * REDO_SHARE
