"""Buffers are bounded by what is still incomplete; the stable head advances over every complete prefix."""

from __future__ import annotations

from itertools import pairwise

import pytest

import evenflow as ef
from evenflow.engine.simulator.faults import Fault
from monitors import SECOND, assert_even, chain, counted, seen, steady


def in_turn(seconds: int) -> list[Fault]:
    """m1 fails from 2 to 12, m2 from 10 to 20, m1 from 18 to 28, …: at no time are all inputs well."""
    faults: list[Fault] = []
    for i, start in enumerate(range(2, seconds - 10, 8)):
        faults.append(ef.Cut("m1" if i % 2 == 0 else "m2", f"{start}s", f"{start + 10}s"))
    return faults


@pytest.mark.parametrize("reconcile", ["checkpoint", "undo"])
def test_inputs_that_fail_in_turn_for_ever_do_not_fill_buffers(reconcile: str) -> None:
    short, long = (
        ef.simulate(counted(), steady(seconds, rate=10), in_turn(seconds), seed=1, x="1s", reconcile=reconcile)
        for seconds in (40, 160)
    )
    assert_even(long)
    most = [max(rows for _, rows in result.run.buffered) for result in (short, long)]
    assert most[1] <= 1.3 * most[0]
    assert most[1] <= 3 * 10 * 22, "more than two overlapping failures' rows"


def test_stable_rows_go_on_though_some_input_is_always_missing() -> None:
    result = ef.simulate(chain(1, x="1s"), steady(80, rate=10), in_turn(80), seed=1)
    assert_even(result)
    stable = [time for time, _ in seen(result, ef.Stable)]
    gaps = [later - earlier for earlier, later in pairwise(stable)]
    assert max(gaps) < 13
    assert len(seen(result, ef.Undo)) <= 2 * len(in_turn(80))
    assert result.delay_new("out") < SECOND


def test_logs_are_cut_when_consumers_have_what_they_hold() -> None:
    result = ef.simulate(chain(3), steady(60, rate=20), seed=1)
    assert_even(result)
    assert max(rows for _, rows in result.run.buffered) < 3 * 20 * 5


def test_a_cut_link_between_nodes_keeps_what_the_consumer_misses() -> None:
    result = ef.simulate(chain(2, x="1s"), steady(30, rate=20), [ef.Cut("n0->n1", "5s", "20s")], seed=1)
    assert_even(result)
    most = max(rows for _, rows in result.run.buffered)
    assert 3 * 20 * 13 < most < 3 * 20 * 20
    assert result.run.buffered[-1][1] < 3 * 20 * 5
