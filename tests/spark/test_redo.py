"""Redo on a real Spark, in runs of the simulator: the stable rows are those of a run without failures, to the bit."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import evenflow as ef
from evenflow.engine.runtime.spark.executor import SparkExecutor
from evenflow.engine.runtime.spark.host import SparkHost
from evenflow.engine.runtime.spark.settings import SparkSettings
from evenflow.reconcile.job import RedoJob, Replayed
from monitors import SECOND
from recipes import awkward_rows, bits, random_case

pytestmark = pytest.mark.xdist_group("spark")
SEEDS = range(6)


class Counting(SparkExecutor):
    """Counts what really ran on Spark."""

    def __init__(self, host: SparkHost) -> None:
        super().__init__(host)
        self.jobs = 0

    def run(self, job: RedoJob[pl.DataFrame]) -> Replayed[pl.DataFrame]:
        replayed = super().run(job)
        self.jobs += 1
        return replayed


def spread(rows: pl.DataFrame) -> pl.DataFrame:
    """The same rows over ten seconds."""
    last = max(rows["tuple_time"].max() or 1, 1)
    return rows.with_columns(pl.col("tuple_time") * (10 * SECOND) // last)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_networks_and_failures_come_even(spark: SparkHost, seed: int) -> None:
    net, inputs = random_case(seed + 100, rows=400)
    inputs = {name: spread(rows) for name, rows in inputs.items()}
    rng = random.Random(seed)
    start = rng.uniform(1, 5)
    faults = [ef.Cut(rng.choice(sorted(inputs)), f"{start:.3f}s", f"{start + rng.uniform(2, 4):.3f}s")]
    executor = Counting(spark)
    how: Any = {"x": "1s", "reconcile": rng.choice(["checkpoint", "undo"]), "seed": seed}
    result = ef.simulate(net, inputs, faults, **how, replay="spark", spark=executor, job="200ms")
    local = ef.simulate(net, inputs, faults, **how)
    assert result.violations == []
    assert executor.jobs > 0
    whole = ef.fold(net, inputs)
    for name, rows in whole.items():
        assert bits(result.stable(name)) == bits(rows) == bits(local.stable(name)), name
    ran = result.redos.filter(pl.col("executor") == "spark")
    assert not ran.is_empty()
    # Undo/redo without a horizon falls back to checkpoint/redo, on Spark or not.
    assert how["reconcile"] == "undo" or not ran["fell_back"].any()


def slow_once(folder: Path) -> Any:
    """A row function that in Spark's workers says that it runs and waits until something was killed."""
    node = os.getpid()

    def wait(row: dict[str, Any]) -> dict[str, Any]:
        if os.getpid() != node and not (folder / "killed").exists():
            (folder / f"running-{os.getpid()}").touch()
            while not (folder / "killed").exists():
                time.sleep(0.01)
        return {**row, "x": (row["x"] or 0.0) / 3}

    return wait


def summed(function: Any) -> ef.Network:
    net = ef.Network("summed")
    merged = net.union(*(net.source(name, {"k": pl.Int64, "x": pl.Float64}) for name in "abc"))
    merged.map_rows(function).window("1s", by="k").agg(n=ef.count(), x=ef.sum("x")).output("out")
    return net


def inputs(seed: int) -> dict[str, pl.DataFrame]:
    rng = random.Random(seed)
    return {name: awkward_rows(rng, 300, 20, 12 * SECOND).select("tuple_time", "k", "x") for name in "abc"}


def even(net: ef.Network, executor: SparkExecutor, seed: int = 5) -> ef.Result:
    frames = inputs(seed)
    how: Any = {"x": "1s", "replay": "spark", "reconcile": "checkpoint", "spark": executor, "job": "200ms"}
    result = ef.simulate(net, frames, [ef.Cut("b", "3s", "8s")], seed=seed, **how)
    assert result.violations == []
    assert bits(result.stable("out")) == bits(ef.fold(net, frames)["out"])
    return result


def kill_when_running(pid: int, folder: Path) -> None:
    while not list(folder.glob("running-*")):
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    (folder / "killed").touch()


def test_spark_is_killed_in_the_middle_of_redo_and_the_redo_is_tried_again(spark: SparkHost, tmp_path: Path) -> None:
    spark.wait_ready()
    before = spark.pid
    killer = threading.Thread(target=kill_when_running, args=(spark.jvm_pid, tmp_path))
    killer.start()
    result = even(summed(slow_once(tmp_path)), SparkExecutor(spark))
    killer.join()
    failed = result.controls.filter(pl.col("kind") == "REPLAY_FAILED")["detail"].to_list()
    assert len(failed) == 1
    assert failed[0].startswith("Spark died: its Java ended (killed by SIGKILL)")
    assert failed[0].endswith("; it is tried again")
    first = result.redos.row(0, named=True)
    assert (first["executor"], first["fell_back"]) == ("spark", False)
    assert spark.pid != before


def test_a_spark_that_cannot_start_costs_nothing_but_time(tmp_path: Path) -> None:
    with SparkHost(SparkSettings(java=str(tmp_path))) as dead:
        result = even(summed(lambda row: row), SparkExecutor(dead))
    failed = result.controls.filter(pl.col("kind") == "REPLAY_FAILED")["detail"].to_list()
    assert "is no JAVA_HOME" in failed[0]
    assert failed[1].endswith("; the node folds it itself")
    assert result.redos.select("executor", "fell_back").unique().rows() == [("local", True)]


def test_a_task_that_raises_is_left_to_the_node(spark: SparkHost) -> None:
    """The function works in the node and nowhere else."""
    node = os.getpid()

    def picky(row: dict[str, Any]) -> dict[str, Any]:
        if os.getpid() != node:
            raise RuntimeError("not here")
        return row

    result = even(summed(picky), SparkExecutor(spark))
    failed = result.controls.filter(pl.col("kind") == "REPLAY_FAILED")["detail"].to_list()
    assert "RuntimeError('not here')" in failed[0]
    assert result.redos.select("executor", "fell_back").unique().rows() == [("local", True)]


def test_auto_measures_and_chooses(spark: SparkHost) -> None:
    """Virtual costs decide here; what runs on Spark really does."""
    executor = Counting(spark)
    frames = inputs(3)
    net = summed(lambda row: row)
    dear = ef.simulate(
        net, frames, [ef.Cut("b", "3s", "8s")], x="1s", replay="auto", spark=executor, redo_cost=5_000.0, job="50ms"
    )
    assert dear.violations == []
    assert executor.jobs >= 1
    assert "spark" in dear.redos["executor"].to_list()
