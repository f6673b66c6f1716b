"""Redo that is handed out: what the node does meanwhile, when it comes back, and when it fails."""

from __future__ import annotations

from typing import Any

import polars as pl

import evenflow as ef
from evenflow.operators.errors import ReplayError
from evenflow.reconcile.job import InProcess, RedoJob, Replayed
from monitors import assert_even, counted, seen, states, steady

CUT = [ef.Cut("m2", "4s", "9s")]


class Counting(InProcess[Any]):
    """Folds jobs in one step and remembers them; the first few fail."""

    def __init__(self, failing: int = 0) -> None:
        self.jobs: list[RedoJob[Any]] = []
        self._failing = failing

    def run(self, job: RedoJob[Any]) -> Replayed[Any]:
        self.jobs.append(job)
        if len(self.jobs) <= self._failing:
            raise ReplayError("the workers are gone")
        return super().run(job)


def run(executor: Counting, faults: list[Any] | None = None, **settings: Any) -> ef.Result:
    settings = {"x": "1s", "replay": "spark", "reconcile": "checkpoint", **settings}
    result = ef.simulate(counted(), steady(20), faults or CUT, seed=3, spark=executor, **settings)
    assert_even(result)
    assert result.stable("out").equals(ef.fold(counted(), steady(20))["out"])
    return result


def redos(result: ef.Result) -> list[tuple[Any, ...]]:
    return result.redos.select("method", "executor", "fell_back").unique(maintain_order=True).rows()


def told(result: ef.Result, kind: str) -> list[str]:
    return result.controls.filter(pl.col("kind") == kind)["detail"].to_list()


def test_a_job_corrects_and_the_node_folds_what_came_meanwhile() -> None:
    executor = Counting()
    result = run(executor, job="1s")
    assert redos(result) == [("checkpoint", "spark", False), ("checkpoint", "local", False)]
    first = executor.jobs[0]
    assert sum(part.height for part in first.rows) == first.n_rows > 100
    assert told(result, "REPLAY") == [f"{job.n_rows} rows on spark" for job in executor.jobs]


def test_what_is_new_comes_in_time_while_a_job_is_away() -> None:
    """The job takes 3 s, three times X."""
    result = run(Counting(), job="3s")
    assert result.delay_new("out") <= 1_000_000
    away = [time for time, _ in seen(result, ef.Tentative) if 9.5 < time < 12]
    assert len(away) >= 2, "nothing tentative came while the job was away"
    assert states(result, "main") == ["STABLE", "UP_FAILURE", "STABILIZATION", "STABLE"]


def test_a_job_that_fails_is_tried_again() -> None:
    executor = Counting(failing=1)
    result = run(executor, job="200ms")
    assert told(result, "REPLAY_FAILED") == ["the workers are gone; it is tried again"]
    assert redos(result)[0] == ("checkpoint", "spark", False)
    assert executor.jobs[0].upto <= executor.jobs[1].upto


def test_when_it_fails_again_the_node_folds_it_and_says_so() -> None:
    executor = Counting(failing=99)
    result = run(executor, job="200ms")
    assert [detail.partition("; ")[2] for detail in told(result, "REPLAY_FAILED")] == [
        "it is tried again",
        "the node folds it itself",
    ]
    assert redos(result) == [("checkpoint", "local", True)]
    assert len(executor.jobs) == 2


def test_what_failed_is_tried_anew_in_the_next_failure() -> None:
    executor = Counting(failing=2)
    result = run(executor, [*CUT, ef.Cut("m1", "13s", "16s")], job="200ms")
    assert ("checkpoint", "local", True) in redos(result)
    assert ("checkpoint", "spark", False) in redos(result)


def test_undo_redo_goes_on_from_the_state_that_a_job_brought() -> None:
    executor = Counting()
    result = run(executor, [*CUT, ef.Cut("m3", "12s", "16s")], job="300ms", reconcile="undo")
    assert executor.jobs
    assert {method for method, _, _ in redos(result)} == {"undo"}


def test_another_failure_while_a_job_is_away() -> None:
    """``m1`` fails before the job for ``m2`` is back; what came back counts, and the correction is marked as ended."""
    executor = Counting()
    result = run(executor, [*CUT, ef.Cut("m1", "9.5s", "14s")], job="2s")
    assert executor.jobs
    assert len(seen(result, ef.Undo)) == len(seen(result, ef.RecDone))


def test_auto_hands_out_what_is_sooner_done_elsewhere() -> None:
    cheap, dear = Counting(), Counting()
    run(cheap, replay="auto", redo_cost=1_000.0, job="50ms", job_cost=1.0)
    run(dear, replay="auto", redo_cost=1.0, job="5s", job_cost=1.0)
    assert cheap.jobs
    assert not dear.jobs


def test_local_redo_needs_no_executor() -> None:
    executor = Counting(failing=99)
    result = run(executor, replay="local")
    assert executor.jobs == []
    assert redos(result) == [("checkpoint", "local", False)]
