"""Where redo runs, and how that is learnt."""

from __future__ import annotations

import pytest

from evenflow.engine.dispatch import BATCH_ROWS, STALE_JOBS, TRIES, Dispatcher, Rates
from evenflow.reconcile.job import Where

SECOND = 1_000_000


def test_the_first_slice_here_tells_what_a_row_costs() -> None:
    rates = Rates()
    assert not rates.job_is_quicker(10**9, 0)
    rates.folded_here(1_000, 2_000)
    assert rates.local_us_per_row == 2.0
    rates.folded_here(1_000, 4_000)
    assert rates.local_us_per_row == 3.0
    rates.folded_here(0, 9_000)
    assert rates.local_us_per_row == 3.0


def test_before_a_job_was_measured_its_tasks_share_the_work_and_the_spill_comes_on_top() -> None:
    rates = Rates(local_us_per_row=1.0, job_us=300_000, parallelism=2)
    assert not rates.job_is_quicker(740_000, 0)  # 0.3 s + 0.74 M x 0.6
    assert rates.job_is_quicker(760_000, 0)
    cheap = Rates(local_us_per_row=0.05, parallelism=2)
    assert not cheap.job_is_quicker(10**9, 0), "spilling costs more than folding"


def test_spark_that_is_still_starting_is_waited_for_only_if_it_pays() -> None:
    rates = Rates(1.0, 0.5, 300_000, ready_at_us=5 * SECOND)
    assert not rates.job_is_quicker(5_000_000, 0)
    assert rates.job_is_quicker(5_000_000, 4 * SECOND)


def test_a_long_job_tells_the_cost_of_a_row_and_a_short_one_the_overhead() -> None:
    rates = Rates(1.0, None, 200_000)
    rates.folded_elsewhere(1_000_000, 700_000)
    assert rates.job_us_per_row == pytest.approx(0.5)
    rates.folded_elsewhere(1_000, 100_500)
    assert rates.job_us == pytest.approx(150_000)
    rates.folded_elsewhere(1_000_000, 1_150_000)
    assert rates.job_us_per_row == pytest.approx(0.75)


def test_after_some_jobs_the_cost_here_is_measured_anew() -> None:
    """What was measured once may have been wrong; a slice costs little."""
    rates = Rates(1_000.0, 0.1, 100_000)
    for _ in range(STALE_JOBS):
        assert rates.job_is_quicker(10**6, 0)
        rates.folded_elsewhere(10**6, 200_000)
    assert not rates.job_is_quicker(10**6, 0)
    rates.folded_here(100, 10)
    assert rates.local_us_per_row == pytest.approx(500.05)
    assert rates.job_is_quicker(10**6, 0)


def test_spark_waits_for_what_is_on_its_way_but_not_for_ever() -> None:
    dispatcher = Dispatcher("spark", Rates(), patience_us=SECOND)
    dispatcher.arriving = True
    assert dispatcher.where(0, 10, 0) == Where.WAIT
    assert dispatcher.where(0, BATCH_ROWS, 0) == Where.ELSEWHERE
    assert dispatcher.where(0, 10, SECOND) == Where.ELSEWHERE
    dispatcher.arriving = False
    assert dispatcher.where(1, 10, 0) == Where.ELSEWHERE


def test_what_comes_behind_the_first_job_goes_where_it_is_sooner_done() -> None:
    dispatcher = Dispatcher("spark", Rates(1.0, 0.1, 100_000), patience_us=SECOND)
    dispatcher.done(0, 10**6, 200_000)
    assert dispatcher.where(0, 10, 0) == Where.HERE
    assert dispatcher.where(0, 10**7, 0) == Where.ELSEWHERE


def test_a_fragment_is_not_handed_out_any_more_once_it_failed_too_often() -> None:
    dispatcher = Dispatcher("auto", Rates(1.0, 0.1, 0.0), patience_us=SECOND)
    told = [dispatcher.failed(0) for _ in range(TRIES)]
    assert told == ["it is tried again"] * (TRIES - 1) + ["the node folds it itself"]
    assert dispatcher.where(0, 10**7, 0) == Where.INSTEAD
    assert dispatcher.where(1, 10**7, 0) == Where.ELSEWHERE, "another fragment is not concerned"
    dispatcher.settled([0])
    assert dispatcher.where(0, 10**7, 0) == Where.ELSEWHERE


def test_local_never_hands_out() -> None:
    dispatcher = Dispatcher("local", Rates(1.0, 0.0, 0.0), patience_us=SECOND)
    assert dispatcher.where(0, 10**9, 0) == Where.HERE
