"""The policies behave as figures 9 to 11 of the paper say."""

from __future__ import annotations

from typing import Any

import pytest

import evenflow as ef
from monitors import SECOND, assert_even, chain, counted, seen, stable_after, steady

LENGTHS = [1, 2, 5, 15, 60, 120]


def failed(policies: tuple[Any, Any], seconds: float, nodes: int = 1, x: str = "2s") -> ef.Result:
    inputs = steady(seconds + 12, rate=8)
    return ef.simulate(chain(nodes, x, policies), inputs, [ef.Cut("m2", "5s", f"{5 + seconds}s")], seed=3)


@pytest.mark.parametrize("seconds", LENGTHS)
@pytest.mark.parametrize("policy", ["process", "delay"])
def test_new_rows_come_within_x_for_every_length_of_failure(policy: str, seconds: int) -> None:
    result = failed((policy, policy), seconds)
    assert_even(result)
    assert 0 < result.delay_new("out") < 2 * SECOND


@pytest.mark.parametrize("end", [4, 6, 9])
def test_windows_that_only_the_end_of_input_closes_have_no_delay(end: int) -> None:
    """Sources end while what was cut off is still replayed: nobody says that time has passed the last window's end."""
    faults = [ef.Cut("m2", "2s", "60s")]
    result = ef.simulate(counted(), steady(60 + end / 10, rate=5), faults, seed=3, x="1s")
    assert_even(result)
    assert 0 < result.delay_new("out") < SECOND


def test_delay_gives_fewer_tentative_rows_than_process() -> None:
    for seconds in (2, 5, 15):
        processed, delayed = (failed((policy, policy), seconds) for policy in ("process", "delay"))
        assert 0 < delayed.n_tentative("out") < processed.n_tentative("out")


@pytest.mark.parametrize("policy", ["process", "delay"])
def test_a_failure_shorter_than_alpha_x_gives_no_tentative_row(policy: str) -> None:
    for seconds in (0.2, 0.7, 1.1, 1.3):
        result = failed((policy, policy), seconds)
        assert_even(result)
        assert result.n_tentative("out") == 0, seconds
    assert failed((policy, policy), 2.2).n_tentative("out") > 0


def test_suspend_in_stabilization_breaks_x_after_long_failures_only() -> None:
    assert failed(("process", "suspend"), 5).delay_new("out") < 2 * SECOND
    long = failed(("process", "suspend"), 60)
    assert_even(long)
    assert long.delay_new("out") > 2 * SECOND


def test_suspend_gives_up_x_and_says_so() -> None:
    result = failed(("suspend", "suspend"), 5)
    assert result.n_tentative("out") == 0
    assert result.delay_new("out") > 4 * SECOND
    assert "UP_FAILURE" in result.states()["state"].to_list()
    assert_even(result)


@pytest.mark.parametrize("policy", ["process", "delay"])
@pytest.mark.parametrize("nodes", [1, 2, 3, 4])
def test_chains_keep_new_rows_within_k_times_x(nodes: int, policy: str) -> None:
    result = failed((policy, policy), 15, nodes)
    assert_even(result)
    assert result.n_tentative("out") > 0
    assert 0 < result.delay_new("out") <= nodes * 2 * SECOND


def test_a_chain_heals_together() -> None:
    """After 5 s a chain of four is stable within 1.5 times what one node takes, with at most 1.2 times its rows."""
    one, four = (failed(("process", "process"), 5, nodes, x="1s") for nodes in (1, 4))
    assert_even(four)
    assert 0 < stable_after(four, 10) <= 1.5 * stable_after(one, 10)
    assert 0 < four.n_tentative("out") <= 1.2 * one.n_tentative("out")


@pytest.mark.parametrize("nodes", [1, 2, 4])
def test_outputs_do_not_flap(nodes: int) -> None:
    for seconds in (5, 15, 60):
        result = failed(("process", "process"), seconds, nodes, x="1s")
        assert 1 <= len(seen(result, ef.Undo)) <= 9


@pytest.mark.parametrize("speed", [0.6, 1.2, 3])
def test_a_slow_replay_does_not_make_outputs_flap(speed: float) -> None:
    """Each part of it moves the stable head and lets it stop again; that is one correction, not many."""
    faults = [ef.Cut("m2", "5s", "20s")]
    result = ef.simulate(chain(3, x="1s"), steady(30, rate=8), faults, seed=3, replay_speed=speed)
    assert_even(result)
    assert 1 <= len(seen(result, ef.Undo)) <= 3
