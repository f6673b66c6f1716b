"""Redo as Spark jobs: a job's buckets spill as Arrow files, tasks fold them, and the outcome is read back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from evenflow.engine.runtime.replay.run import Progress, Replay, RunTasks
from evenflow.engine.runtime.spark.errors import SparkError
from evenflow.engine.runtime.spark.host import SparkHost
from evenflow.engine.runtime.spark.settings import SparkSettings
from evenflow.operators.errors import InvariantError, ReplayError
from evenflow.operators.fragment import Fragment
from evenflow.reconcile.job import RedoJob, Replayed

JOB_S_MIN = 60.0
ROWS_PER_S_MIN = 20_000
"""A job that is slower than this hangs, or is of no use."""


def tasks_on(host: SparkHost, rows: int) -> RunTasks:
    """Runs the tasks of a pass on Spark; ``rows`` bound how long they may take."""
    timeout_s = JOB_S_MIN + rows / ROWS_PER_S_MIN

    def run(function: Callable[[str], str], tasks: Sequence[str], progress: Progress) -> list[str]:
        return host.run(function, tasks, timeout_s, lambda done, of: progress(done / of))

    return run


def replay_job(host: SparkHost, job: RedoJob[pl.DataFrame]) -> Replayed[pl.DataFrame]:
    """Fold a job on Spark: what its fragment's ``step`` would give. Raises ``SparkError``."""
    fragment = job.fragment
    if not isinstance(fragment, Fragment):
        raise InvariantError("only fragments of operators can be replayed on Spark")
    host.wait_ready()
    streams = [stage.stream for stage in fragment.stages]
    before: dict[int, Any] = dict(zip(streams, job.state, strict=True))
    with TemporaryDirectory(prefix="redo-", dir=host.scratch) as folder:
        tasks = tasks_on(host, job.n_rows)
        replay = Replay([fragment], fragment.leaves, Path(folder), host.parallelism, tasks)
        made, after = replay.run(dict(zip(fragment.inputs, job.rows, strict=True)), before, job.upto)
        leaves = {stream: (one.rows(), one.boundary) for stream, one in made.items()}
    return Replayed(tuple(after.get(stream, before[stream]) for stream in streams), leaves)


class SparkExecutor:
    """Runs jobs on one Spark, which starts with the first of them, or with ``warm_up``."""

    name = "spark"

    def __init__(self, host: SparkHost) -> None:
        self.host = host

    def warm_up(self) -> None:
        """Have Spark started in the background: it takes some seconds."""
        self.host.start()

    def run(self, job: RedoJob[pl.DataFrame]) -> Replayed[pl.DataFrame]:
        try:
            return replay_job(self.host, job)
        except (SparkError, OSError, MemoryError, pl.exceptions.PolarsError) as error:
            raise ReplayError(str(error)) from error


@cache
def shared_executor(master: str | None = None) -> SparkExecutor:
    """This process's one executor on a master: it stays warm from one run to the next, and ends with the process."""
    return SparkExecutor(SparkHost(SparkSettings(master) if master else SparkSettings()))
