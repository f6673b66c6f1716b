"""Spark in a process of its own: jobs, errors, deaths and the end."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from evenflow.engine.runtime.spark.errors import SparkError
from evenflow.engine.runtime.spark.host import SparkHost
from evenflow.engine.runtime.spark.pickling import pickled
from evenflow.engine.runtime.spark.processes import alive, await_end, descendants
from evenflow.engine.runtime.spark.settings import SparkSettings

pytestmark = pytest.mark.xdist_group("spark")

HELPER = """
FACTOR = 3

def times(text):
    return str(int(text) * FACTOR)
"""
QUERY = """
import helper_of_a_query

def answer(text):
    return helper_of_a_query.times(text) + "!"
"""
DOOMED = """
import json, sys, time
from evenflow.engine.runtime.spark.host import SparkHost
from evenflow.engine.runtime.spark.settings import SparkSettings

host = SparkHost(SparkSettings("local[1]"))
host.start()
print(json.dumps([host.pid, str(host.scratch.parent)]), flush=True)
host.wait_ready()
print("ready", flush=True)
host.run(lambda text: time.sleep(600) or text, ["a"], timeout_s=600)
"""


def wait_for(condition: Callable[[], object]) -> None:
    """Wait for what another process does; it fails by the test's own time limit only."""
    while not condition():
        time.sleep(0.02)


def load(path: Path, name: str) -> object:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_results_come_in_the_order_of_the_tasks(spark: SparkHost) -> None:
    def late_first(text: str) -> str:
        time.sleep(0.2 if text == "0" else 0)
        return f"<{text}>"

    assert spark.run(late_first, [str(n) for n in range(9)], timeout_s=60) == [f"<{n}>" for n in range(9)]
    assert spark.run(late_first, [], timeout_s=60) == []


def test_each_task_has_a_spark_task_of_its_own(spark: SparkHost) -> None:
    def partition(_: str) -> str:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        return str(context.partitionId())

    assert spark.run(partition, ["x"] * 5, timeout_s=60) == ["0", "1", "2", "3", "4"]


def test_several_jobs_run_at_once(spark: SparkHost, tmp_path: Path) -> None:
    def meet(argument: str) -> str:
        mine, other = json.loads(argument)
        Path(mine).touch()
        while not Path(other).exists():
            time.sleep(0.01)
        return mine

    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    results: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda pair=pair: results.append(spark.run(meet, [json.dumps(pair)], timeout_s=60)))
        for pair in ((one, two), (two, one))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [[one], [two]]


def test_progress_is_told(spark: SparkHost) -> None:
    def brief(text: str) -> str:
        time.sleep(0.4)
        return text

    told: list[tuple[int, int]] = []
    spark.run(brief, ["x"] * 6, timeout_s=60, progress=lambda done, of: told.append((done, of)))
    assert told
    assert told == sorted(set(told))
    assert {of for _, of in told} == {6}


def test_workers_have_the_settings_that_make_sums_repeatable(spark: SparkHost) -> None:
    def settings(_: str) -> str:
        return os.environ["POLARS_MAX_THREADS"] + os.environ["POLARS_NO_PARTITION"]

    assert spark.run(settings, [""], timeout_s=60) == ["11"]


def test_a_failing_task_names_its_exception(spark: SparkHost) -> None:
    def divide(text: str) -> str:
        return str(1 // int(text))

    with pytest.raises(SparkError) as caught:
        spark.run(divide, ["1", "0"], timeout_s=60)
    assert str(caught.value).startswith("a Spark job failed: task 1 failed: ZeroDivisionError: ")
    assert "(in divide, test_host.py:" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_a_machine_failed_at_is_tried_again_and_then_told(spark: SparkHost, tmp_path: Path) -> None:
    def read(path: str) -> str:
        with open(path + ".tries", "a") as tries:
            tries.write("x")
        return Path(path).read_text()

    path = str(tmp_path / "missing")
    with pytest.raises(SparkError, match=r"task 0 failed: FileNotFoundError: .*missing' \(in ") as caught:
        spark.run(read, [path], timeout_s=60)
    assert "\n" not in str(caught.value)
    assert Path(path + ".tries").read_text() == "xxxx"


def test_a_result_must_be_text(spark: SparkHost) -> None:
    with pytest.raises(SparkError, match="gave a int, not a str"):
        spark.run(lambda text: len(text), ["a"], timeout_s=60)  # type: ignore[arg-type,return-value]


def test_a_killed_worker_is_replaced_and_its_task_tried_again(spark: SparkHost, tmp_path: Path) -> None:
    def die_once(path: str) -> str:
        if not Path(path).exists():
            Path(path).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return "done"

    pid = spark.pid
    assert spark.run(die_once, [str(tmp_path / name) for name in "ab"], timeout_s=60) == ["done", "done"]
    assert spark.pid == pid


def test_time_runs_out_and_the_job_is_cancelled(spark: SparkHost, tmp_path: Path) -> None:
    def wait(path: str) -> str:
        Path(path).write_text(str(os.getpid()))
        time.sleep(600)
        return path

    with pytest.raises(SparkError, match=r"not done within 1 s, and was cancelled"):
        spark.run(wait, [str(tmp_path / name) for name in "ab"], timeout_s=1)
    assert spark.run(str.upper, ["free again"], timeout_s=60) == ["FREE AGAIN"]
    assert await_end([int(path.read_text()) for path in tmp_path.iterdir()], 30) == []


def test_functions_of_modules_that_workers_cannot_import(spark: SparkHost, tmp_path: Path) -> None:
    (tmp_path / "helper_of_a_query.py").write_text(HELPER)
    (tmp_path / "query.py").write_text(QUERY)
    load(tmp_path / "helper_of_a_query.py", "helper_of_a_query")
    query = load(tmp_path / "query.py", "evenflow_query_file_7")
    try:
        assert spark.run(query.answer, ["5", "7"], timeout_s=60) == ["15!", "21!"]  # type: ignore[attr-defined]
    finally:
        del sys.modules["helper_of_a_query"], sys.modules["evenflow_query_file_7"]


def test_our_own_modules_go_by_name_and_no_setting_stays() -> None:
    from pyspark import cloudpickle

    from evenflow.engine.runtime.spark.worker import describe

    assert len(pickled(describe)) < 200
    assert len(pickled(wait_for)) > 200
    assert cloudpickle.list_registry_pickle_by_value() == set()


def test_a_function_that_cannot_be_sent_is_refused(spark: SparkHost) -> None:
    lock = threading.Lock()
    with pytest.raises(SparkError, match=r"cannot be sent to Spark's workers .*lock"):
        spark.run(lambda text: text + str(lock), ["a"], timeout_s=60)


def test_spark_dies_in_the_middle_and_the_next_run_starts_it_anew(spark: SparkHost, tmp_path: Path) -> None:
    def hang(path: str) -> str:
        Path(path).touch()
        time.sleep(600)
        return path

    caught: list[SparkError] = []

    def job() -> None:
        with pytest.raises(SparkError) as error:
            spark.run(hang, [str(tmp_path / "running")], timeout_s=600)
        caught.append(error.value)

    facts = spark.wait_ready()
    thread = threading.Thread(target=job)
    thread.start()
    wait_for((tmp_path / "running").exists)
    assert (facts.parallelism, spark.parallelism, spark.pid is None, spark.jvm_pid is None) == (2, 2, False, False)
    family = [spark.pid or 0, *descendants(spark.pid or 0)]
    os.kill(spark.jvm_pid or 0, signal.SIGKILL)
    thread.join()
    assert str(caught[0]).startswith("Spark died: its Java ended (killed by SIGKILL)")
    assert await_end(family, 30) == []
    assert spark.run(str.upper, ["back"], timeout_s=60) == ["BACK"]
    assert spark.pid not in family


def test_a_closed_host_leaves_nothing_and_does_nothing_more() -> None:
    host = SparkHost(SparkSettings("local[1]"))
    assert (host.parallelism, host.alive, host.ready) == (1, False, False)
    folder = host.scratch.parent
    host.start()
    host.wait_ready()
    family = [host.pid or 0, *descendants(host.pid or 0)]
    assert len(family) >= 4
    assert alive(host.pid or 0)
    assert alive(host.jvm_pid or 0)
    host.close()
    assert await_end(family, 0) == []
    assert not folder.exists()
    assert not host.alive
    with pytest.raises(SparkError, match="closed"):
        host.run(str.upper, ["a"], timeout_s=60)


def test_a_host_can_be_closed_while_spark_is_starting() -> None:
    host = SparkHost(SparkSettings("local[1]"))
    host.start()
    pid = host.pid or 0
    wait_for(lambda: descendants(pid))
    family = [pid, *descendants(pid)]
    with pytest.raises(SparkError, match="still starting"):
        host.wait_ready(0.01)
    host.close()
    assert await_end(family, 30) == []


def test_a_spark_that_cannot_start_says_why(tmp_path: Path) -> None:
    with (
        SparkHost(SparkSettings(java=str(tmp_path))) as host,
        pytest.raises(SparkError, match=r"Spark did not start: .* is no JAVA_HOME"),
    ):
        host.wait_ready()
    conf = {"spark.driver.extraJavaOptions": "-Xss1nothing"}
    with (
        SparkHost(SparkSettings(conf=conf)) as host,
        pytest.raises(SparkError, match=r"(?s)log ends with:.*-Xss1nothing"),
    ):
        host.wait_ready()
    with (
        SparkHost(SparkSettings(start_timeout_s=0.05)) as host,
        pytest.raises(SparkError, match=r"did not start within 0\.05 s"),
    ):
        host.run(str.upper, ["a"], timeout_s=60)


def test_nothing_stays_behind_when_the_host_is_killed() -> None:
    doomed = subprocess.Popen([sys.executable, "-c", DOOMED], stdout=subprocess.PIPE, text=True)
    with doomed:
        assert doomed.stdout is not None
        pid, folder = json.loads(doomed.stdout.readline())
        assert doomed.stdout.readline() == "ready\n"
        family = [pid, *descendants(pid)]
        doomed.kill()
    assert await_end(family, 30) == []
    assert not Path(folder).exists()
