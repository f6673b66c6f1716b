"""A real cluster: jobs on both workers, redo with an executor killed on the way, and a back-fill."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

import evenflow as ef
from evenflow.engine.runtime.backfill.backfill import backfill_on
from evenflow.engine.runtime.spark.executor import SparkExecutor
from evenflow.engine.runtime.spark.host import SparkHost
from evenflow.engine.runtime.spark.processes import await_end
from evenflow.engine.runtime.spark.settings import SparkSettings
from evenflow.engine.runtime.spark.standalone import StandaloneCluster
from recipes import bits, random_case
from spark.test_redo import even, slow_once, summed

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture(scope="module")
def cluster() -> Iterator[StandaloneCluster]:
    with StandaloneCluster(workers=2) as started:
        yield started
        family = started.pids()
    assert await_end(family, 0) == []


@pytest.fixture(scope="module")
def host(cluster: StandaloneCluster) -> Iterator[SparkHost]:
    with SparkHost(SparkSettings(cluster.master)) as started:
        assert started.wait_ready().master == cluster.master
        yield started


def meet(argument: str) -> str:
    """Wait until all tasks run at once, so that no worker does them all; then say where this one ran."""
    import evenflow

    folder, name, count = json.loads(argument)
    Path(folder, name).touch()
    while len(list(Path(folder).iterdir())) < count:
        time.sleep(0.01)
    return json.dumps([os.getppid(), evenflow.__file__])


def test_jobs_run_on_both_workers_with_the_package_from_us(
    cluster: StandaloneCluster, host: SparkHost, tmp_path: Path
) -> None:
    assert cluster.master.startswith("spark://127.0.0.1:")
    tasks = [json.dumps([str(tmp_path), name, 2]) for name in "ab"]
    places = [json.loads(found) for found in host.run(meet, tasks, timeout_s=60)]
    assert len({place for place, _ in places}) == 2
    assert all("evenflow.zip" in file for _, file in places)
    assert host.parallelism == 2


def kill_when_running(cluster: StandaloneCluster, folder: Path, killed: list[int]) -> None:
    """Kill an executor once both have a task of the redo, then let the tasks go on."""
    while len(list(folder.glob("running-*"))) < 2:
        time.sleep(0.02)
    killed.append(cluster.executor_pids()[0])
    os.kill(killed[0], signal.SIGKILL)
    await_end(killed, 30)
    (folder / "killed").touch()


def test_redo_outlives_an_executor(cluster: StandaloneCluster, host: SparkHost, tmp_path: Path) -> None:
    killed: list[int] = []
    killer = threading.Thread(target=kill_when_running, args=(cluster, tmp_path, killed))
    killer.start()
    result = even(summed(slow_once(tmp_path)), SparkExecutor(host))
    killer.join()
    assert killed
    first = result.redos.row(0, named=True)
    assert (first["executor"], first["fell_back"]) == ("spark", False)
    assert "REPLAY_FAILED" not in result.controls["kind"].to_list(), "Spark itself tried the task again"


def test_back_fill_on_the_cluster(host: SparkHost, tmp_path: Path) -> None:
    net, inputs = random_case(31)
    done = backfill_on(host, net, inputs, tmp_path)
    for name, rows in ef.fold(net, inputs).items():
        assert bits(pl.read_parquet(done[name])) == bits(rows), name


def test_a_cluster_elsewhere_needs_a_folder_that_its_workers_share(tmp_path: Path) -> None:
    from evenflow.engine.runtime.spark.errors import SparkError

    with pytest.raises(SparkError, match="name a scratch folder they share"):
        _ = SparkHost(SparkSettings("spark://elsewhere.example:7077")).scratch
    assert SparkHost(SparkSettings("spark://elsewhere.example:7077", scratch=tmp_path)).scratch == tmp_path
