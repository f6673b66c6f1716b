"""A real cluster: jobs on both workers, and one executor killed on the way."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from evenflow.engine.runtime.spark.host import SparkHost
from evenflow.engine.runtime.spark.processes import await_end
from evenflow.engine.runtime.spark.settings import SparkSettings
from evenflow.engine.runtime.spark.standalone import StandaloneCluster

pytestmark = pytest.mark.xdist_group("spark")


def meet(argument: str) -> str:
    """Wait until all tasks run at once, so that no worker does them all; then say where this one ran."""
    import evenflow

    folder, name, count = json.loads(argument)
    Path(folder, name).touch()
    while len(list(Path(folder).iterdir())) < count:
        time.sleep(0.01)
    return json.dumps([os.getppid(), evenflow.__file__])


def wait_for_the_kill(argument: str) -> str:
    """Count the try, and wait until an executor was killed."""
    folder, name = json.loads(argument)
    with Path(folder, name).open("a") as tries:
        tries.write("x")
    while not Path(folder, "killed").exists():
        time.sleep(0.01)
    return name


def kill_when_running(pid: int, folder: Path) -> None:
    """Kill an executor once both have a task, then let the tasks go on."""
    while not all((folder / name).exists() for name in "ab"):
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    await_end([pid], 30)
    (folder / "killed").touch()


def test_a_cluster_runs_jobs_on_both_workers_and_outlives_an_executor(tmp_path: Path) -> None:
    with StandaloneCluster(workers=2) as cluster, SparkHost(SparkSettings(cluster.master)) as host:
        assert cluster.master.startswith("spark://127.0.0.1:")
        assert host.wait_ready().master == cluster.master
        meeting = tmp_path / "meeting"
        meeting.mkdir()
        tasks = [json.dumps([str(meeting), name, 2]) for name in "ab"]
        places = [json.loads(found) for found in host.run(meet, tasks, timeout_s=60)]
        assert len({place for place, _ in places}) == 2
        assert all("evenflow.zip" in file for _, file in places), "the workers have the package from us"
        assert host.parallelism == 2

        first, _ = cluster.executor_pids()
        killer = threading.Thread(target=kill_when_running, args=(first, tmp_path))
        killer.start()
        tasks = [json.dumps([str(tmp_path), name]) for name in "abc"]
        assert host.run(wait_for_the_kill, tasks, timeout_s=120) == ["a", "b", "c"]
        killer.join()
        assert sum(len((tmp_path / name).read_text()) for name in "abc") == 4, "one task was tried twice"
        family = [host.pid or 0, *cluster.pids()]
    assert await_end(family, 0) == []
