"""Conditions that are reported: skewed inputs, and redo that does not gain on its input."""

from __future__ import annotations

from evenflow.engine.watch import IN_A_ROW, OverloadWatch, SkewWatch
from evenflow.operators.times import FINAL, START

SECOND = 1_000_000


def kinds(controls) -> list[str]:  # type: ignore[no-untyped-def]
    return [control.kind for control in controls]


def test_an_input_that_stays_behind_is_reported_once() -> None:
    watch = SkewWatch("main/1", hold_us=SECOND)
    told = []
    for n in range(1, 3 * IN_A_ROW):
        told += [(n, control.where) for control in watch.arrived("s1", n * SECOND, [n * SECOND + 600_000])]
    assert told == [(IN_A_ROW, "main/1:s1")]


def test_an_input_that_catches_up_or_is_a_little_behind_is_not_skewed() -> None:
    watch = SkewWatch("main/1", hold_us=SECOND)
    for n in range(20):
        assert not kinds(watch.arrived("slight", n * SECOND, [n * SECOND + 500_000]))
        assert not kinds(watch.arrived("catching", n * SECOND, [int(n * SECOND + 9 * SECOND * 0.8**n)]))
        assert not kinds(watch.arrived("alone", n * SECOND, [FINAL, START]))


def test_redo_that_does_not_gain_is_overload_until_it_is_through() -> None:
    watch = OverloadWatch("main/1", window_us=SECOND)
    assert kinds(watch.observe(1_000, 0)) == []
    assert kinds(watch.observe(1_100, SECOND // 2)) == []
    (control,) = watch.observe(1_200, SECOND)
    assert (control.kind, watch.overloaded) == ("OVERLOADED", True)
    assert "200 more come each second" in control.detail
    assert kinds(watch.observe(0, 2 * SECOND)) == ["CAUGHT_UP"]
    assert not watch.overloaded


def test_redo_that_gains_tells_how_long_it_will_take() -> None:
    watch = OverloadWatch("main/1", window_us=SECOND)
    assert kinds(watch.observe(1_000, 0)) == []
    (control,) = watch.observe(600, SECOND)
    assert control.kind == "REDO"
    assert control.detail == "600 rows left, about 1.5s"
    assert kinds(watch.observe(0, 3 * SECOND)) == []
