"""``backfill``: a whole network over recorded input on Spark, into Parquet files.

What fits into memory is one batch: passes over the whole network, which hand partitioned files to each other. What does
not is cut into stretches of time, whose redo jobs run fragment by fragment, as those of a live node do.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import polars as pl

from evenflow.engine.runtime.backfill.recording import Given, Recording, stretches
from evenflow.engine.runtime.backfill.table import Table
from evenflow.engine.runtime.replay.run import Progress, Replay, RunTasks
from evenflow.engine.runtime.spark.errors import SparkError, TaskError
from evenflow.engine.runtime.spark.executor import replay_job, tasks_on
from evenflow.engine.runtime.spark.host import SparkHost
from evenflow.engine.runtime.spark.settings import SparkSettings
from evenflow.operators.errors import DeclarationError, InputError, InvariantError, nearest
from evenflow.operators.items import TupleType, with_header
from evenflow.operators.kernel import FrameKernel
from evenflow.operators.plan import Plan
from evenflow.operators.times import FINAL, START
from evenflow.queries.compile import compile_plan
from evenflow.queries.deployment import Deployment
from evenflow.queries.network import Network
from evenflow.reconcile.heads import Heads
from evenflow.reconcile.job import InProcess

T = TypeVar("T")

TRIES = 3
"""How often a pass or a job is tried, each time on a Spark that lives."""
READING = 0.25
"""The share of the progress that reading is."""
LOCAL_ROWS = 20_000
"""Fewer rows are folded here before a job would have begun."""
BATCH_BYTES_MAX = 4 << 30
BUCKET_US = 100_000
"""For a network without a deployment; it does not change a row."""


class Backfilled(dict[str, Path]):
    """The Parquet file of each output, by name."""

    def __init__(self, files: Mapping[str, Path], rows: Mapping[str, int], rejected: Mapping[str, Path]) -> None:
        super().__init__(files)
        self.rows = dict(rows)
        """How many stable rows each output has."""
        self.rejected = dict(rejected)
        """The rows that sources refused, with reasons: a Parquet file for each source that refused any."""

    def __missing__(self, name: str) -> Path:
        raise KeyError(f"there is no output {name!r}; {nearest(name, self)}")


def backfill(
    app: Network | Deployment,
    inputs: Mapping[str, str | Path | pl.DataFrame],
    out: str | Path,
    *,
    master: str | SparkSettings | None = None,
    batch_bytes: int | None = None,
    progress: Progress = lambda share: None,
) -> Backfilled:
    """What the live engine emits as stable, as Parquet files: ``backfill(net, {"monitor1": "recorded"}, "results")``.

    ``inputs`` maps each source's name to a file, a folder of files (in the order of their names) or a frame; a source
    without one is empty. ``master`` is any Spark master, by default this machine. Input that takes more than
    ``batch_bytes`` of memory (an eighth of the machine's, 4 GiB at most) is folded a stretch of time after the other.
    """
    settings = master if isinstance(master, SparkSettings) else SparkSettings(master) if master else SparkSettings()
    with SparkHost(settings) as host:
        return backfill_on(host, app, inputs, out, batch_bytes=batch_bytes, progress=progress)


def backfill_on(
    host: SparkHost,
    app: Network | Deployment,
    inputs: Mapping[str, str | Path | pl.DataFrame],
    out: str | Path,
    *,
    batch_bytes: int | None = None,
    progress: Progress = lambda share: None,
) -> Backfilled:
    """The same on a Spark that is there."""
    network = app.network if isinstance(app, Deployment) else app
    network.check()
    if batch_bytes is not None and batch_bytes < 1:
        raise DeclarationError(f"backfill: batch_bytes={batch_bytes} must be 1 or more")
    given = _checked(network, inputs)
    bucket_us = app.bucket_us if isinstance(app, Deployment) else BUCKET_US
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="backfill-", dir=host.scratch)))
        work = _Backfill(network, bucket_us, folder, Path(out), host, batch_bytes or _batch_bytes())
        stack.callback(work.discard)
        work.read(given, lambda share: progress(READING * share))
        work.fold(lambda share: progress(READING + (1 - READING) * share))
        return work.finish()


def _checked(network: Network, inputs: Mapping[str, str | Path | pl.DataFrame]) -> dict[str, Given]:
    for name, given in inputs.items():
        if name not in network.sources:
            raise InputError(f"inputs: there is no source {name!r}; {nearest(name, network.sources)}")
        if not isinstance(given, str | Path | pl.DataFrame):
            raise InputError(f"inputs: {name!r} must be a path or a Polars frame, not {type(given).__name__}")
    return {name: Path(given) if isinstance(given, str) else given for name, given in inputs.items()}


def _batch_bytes() -> int:
    return min(BATCH_BYTES_MAX, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 8)


class _Backfill:
    """One back-fill, from reading to the finished files."""

    def __init__(
        self, network: Network, bucket_us: int, folder: Path, out: Path, host: SparkHost, batch_bytes: int
    ) -> None:
        self._network = network
        self._bucket_us = bucket_us
        self._folder = folder
        self._host = host
        self._batch_bytes = batch_bytes
        self._plan: Plan = compile_plan(network.nodes, network.output_numbers)
        self._recordings = {
            name: Recording(stream.source, folder, out / "rejected" / f"{name}.parquet")
            for name, stream in network.sources.items()
        }
        self._tables = {
            name: Table(out / f"{name}.parquet", with_header(self._plan.empty(number), 1, TupleType.INSERTION))
            for name, number in self._plan.outputs.items()
        }

    def read(self, inputs: Mapping[str, Given], progress: Progress) -> None:
        """Read and admit everything. Spark starts meanwhile."""
        for place, (name, given) in enumerate(inputs.items()):
            recording = self._recordings[name]
            for _ in recording.read(given):
                progress(place / len(inputs))
            if recording.refused is not None:
                warnings.warn(
                    f"source {name!r} refused {recording.refused.rows} rows; {recording.first_refused}. "
                    f"See {recording.refused.path}",
                    stacklevel=4,
                )
        progress(1.0)

    def fold(self, progress: Progress) -> None:
        """Write all stable rows of every output."""
        cuts = stretches(list(self._recordings.values()), self._batch_bytes, self._bucket_us)
        rows = sum(recording.rows for recording in self._recordings.values())
        if len(cuts) == 1:
            self._fold_batch(rows, progress)
        else:
            self._fold_stretches(cuts, progress)

    def _fold_batch(self, rows: int, progress: Progress) -> None:
        plan, leaves = self._plan, tuple(dict.fromkeys(self._plan.outputs.values()))
        self._host.wait_ready()
        tasks = _persistent(tasks_on(self._host, rows))
        replay = Replay(plan.fragments, leaves, self._folder, self._host.parallelism, tasks, progress)
        made, _ = replay.run(self._between(START, FINAL), None, FINAL)
        for name, number in plan.outputs.items():
            self._write(name, made[number].rows())

    def _fold_stretches(self, cuts: Sequence[int], progress: Progress) -> None:
        heads: Heads[pl.DataFrame] = Heads(self._plan, self._bucket_us, FrameKernel())
        for done, (since, upto) in enumerate(zip([START, *cuts], cuts, strict=False)):
            for number, rows in self._between(since, upto).items():
                heads.insert(number, rows, upto)
            for name, rows in _advance(heads, self._host):
                self._write(name, rows)
            progress((done + 1) / len(cuts))

    def _between(self, since: int, upto: int) -> dict[int, pl.DataFrame]:
        """The rows of a stretch of time of every source that is read, by stream."""
        numbers = {name: stream.number for name, stream in self._network.sources.items()}
        return {
            numbers[name]: recording.between(since, upto)
            for name, recording in self._recordings.items()
            if numbers[name] in self._plan.inputs
        }

    def _write(self, name: str, rows: pl.DataFrame) -> None:
        table = self._tables[name]
        if rows.height:
            table.write(with_header(rows, table.rows + 1, TupleType.INSERTION))

    def finish(self) -> Backfilled:
        refused = {name: one.refused for name, one in self._recordings.items() if one.refused is not None}
        for table in [*self._tables.values(), *refused.values()]:
            table.finish()
        rows = {name: table.rows for name, table in self._tables.items()}
        files = {name: table.path for name, table in self._tables.items()}
        return Backfilled(files, rows, {name: table.path for name, table in refused.items()})

    def discard(self) -> None:
        """Remove what is not complete."""
        for table in [*self._tables.values(), *(one.refused for one in self._recordings.values() if one.refused)]:
            table.discard()


def _advance(heads: Heads[pl.DataFrame], host: SparkHost) -> Iterator[tuple[str, pl.DataFrame]]:
    """Let every fragment fold its complete buckets in a job, from the inputs to the outputs."""
    for number, fragment in enumerate(heads.fragments):
        if fragment.can_send_off:
            job = fragment.send_off(number)
            if job.n_rows < LOCAL_ROWS:
                replayed = InProcess[pl.DataFrame]().run(job)
            else:
                replayed = _tried(partial(replay_job, host, job))
            for output in heads.came_back(number, replayed, "spark", 0).outputs:
                yield output.name, output.rows


def _persistent(run_tasks: RunTasks) -> RunTasks:
    """The same, tried again when it fails: that starts a dead Spark anew."""
    return lambda function, tasks, progress: _tried(lambda: run_tasks(function, tasks, progress))


def _tried(act: Callable[[], T]) -> T:
    """Do something on Spark, again if Spark failed; what failed because of the tasks would fail again."""
    for left in range(TRIES - 1, -1, -1):
        try:
            return act()
        except TaskError:
            raise
        except SparkError as error:
            if not left:
                raise SparkError(f"{error}; tried {TRIES} times. `evenflow fold` needs no Spark") from error
            warnings.warn(f"{error}; it is tried again", stacklevel=2)
    raise InvariantError("a try neither succeeded nor failed")
