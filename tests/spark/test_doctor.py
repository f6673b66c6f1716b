"""The checks of ``evenflow doctor`` that start Spark, and its end when somebody presses Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evenflow.cli import app
from evenflow.engine.runtime.doctor import examine, workers
from evenflow.engine.runtime.doctor import spark as check_of_spark
from evenflow.engine.runtime.doctor.finding import Finding
from evenflow.engine.runtime.spark.host import SparkHost
from evenflow.engine.runtime.spark.processes import await_end, command_line, descendants
from evenflow.engine.runtime.spark.worker import describe

pytestmark = pytest.mark.xdist_group("spark")


def with_another_kernel(_: str) -> str:
    told = json.loads(describe(""))
    told["fingerprint"] |= {"polars": "1.9.0", "self_test": "0123456789abcdef"}
    return json.dumps(told)


def with_another_python(_: str) -> str:
    return json.dumps(json.loads(describe("")) | {"python": "3.9.1", "evenflow": "0.0.7"})


def that_fails(_: str) -> str:
    raise RuntimeError("no such luck")


def test_all_is_well_with_a_spark_that_runs(spark: SparkHost, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(examine, "SparkHost", lambda _: spark)
    closed: list[bool] = []
    monkeypatch.setattr(spark, "close", lambda: closed.append(True))
    facts = spark.wait_ready()
    done = CliRunner().invoke(app, ["doctor", "--json", "--ntp", "[::1]:1", "--data", str(tmp_path)])
    found = {finding["name"]: finding for finding in json.loads(done.stdout)["findings"]}
    assert done.exit_code == 0
    assert closed == [True]
    assert found["Spark"]["level"] == found["workers"]["level"] == "ok"
    assert found["Spark"]["found"].startswith(f"Spark {facts.spark} on local[2,4], ready ")
    assert found["Spark"]["found"].endswith("2 tasks at once")
    assert f"all as here: Python {facts.python}, evenflow " in found["workers"]["found"]
    assert sys.executable in found["workers"]["found"]


def test_workers_with_another_kernel_are_a_problem(spark: SparkHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "describe", with_another_kernel)
    found = workers.check(spark)
    assert found.level == "problem"
    assert "differ: polars: " in found.found
    assert " here, 1.9.0 there; self_test: " in found.found
    # Each difference is told once, however many workers have it.
    assert found.found.count("1.9.0") == 1
    assert found.advice == workers.ALIKE


def test_workers_with_another_python_are_a_problem(spark: SparkHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "describe", with_another_python)
    found = workers.check(spark)
    assert found.level == "problem"
    assert " here, 3.9.1 there; evenflow: " in found.found
    assert found.found.endswith("0.0.7 there")


def test_workers_that_fail_are_a_problem(spark: SparkHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "describe", that_fails)
    found = workers.check(spark)
    assert found.level == "problem"
    assert "RuntimeError: no such luck" in found.found
    assert "redo runs in the node only" in found.advice


def test_a_spark_that_does_not_start_is_a_problem_with_its_reason(tmp_path: Path) -> None:
    """Its Java answers when it is asked for its modules, and then only complains."""
    program = tmp_path / "jdk" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        '#!/bin/sh\n[ "$1" = --list-modules ] && echo java.base@21 && echo jdk.incubator.vector@21 && exit\n'
        'echo "Exception in thread main java.lang.OddError: out of luck" >&2\necho "\tat Odd.main" >&2\nexit 1\n'
    )
    program.chmod(0o755)
    found = {one.name: one for one in examine.examine(examine.Asked(java=str(tmp_path / "jdk"), ntp=(), data=tmp_path))}
    problem = found["Spark"]
    assert (found["Java"].level, problem.level, found["ZeroMQ"].level) == ("ok", "problem", "ok")
    assert problem.found == "Spark did not start: java.lang.OddError: out of luck"
    assert check_of_spark.WITHOUT in problem.advice
    assert "out of luck\n" in problem.detail
    assert "at Odd.main" in problem.detail
    assert found["workers"] == Finding("workers", "warning", "not checked: Spark does not run", "See Spark.")


def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "evenflow", "doctor", "--ntp", "127.0.0.1:1", "--data", str(tmp_path)]
    env = os.environ | {"TMPDIR": str(tmp_path)}
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    family: list[int] = []
    while not any("org.apache.spark" in command_line(pid) for pid in family):
        assert process.poll() is None
        time.sleep(0.02)
        family = descendants(process.pid)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert await_end(family, 30) == []
    assert list(tmp_path.iterdir()) == []
