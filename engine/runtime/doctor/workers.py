"""Spark's Python workers: redo on them must give the same bits as in the node."""

from __future__ import annotations

import json
import platform
from typing import Any

import evenflow
from evenflow.engine.runtime.doctor.finding import Finding, in_a_line
from evenflow.engine.runtime.spark.errors import SparkError
from evenflow.engine.runtime.spark.host import SparkHost
from evenflow.engine.runtime.spark.worker import describe
from evenflow.operators.fingerprint import Fingerprint, kernel_fingerprint

NAME = "workers"
ASKED_MAX = 64
ASK_S = 60.0
ALIKE = "Give the workers the same Python and packages as here: set spark.pyspark.python there, or install them anew."


def check(host: SparkHost) -> Finding:
    """Ask as many as run at once for their Python, packages and kernel, and compare them with ours."""
    try:
        answers = host.run(describe, [""] * min(host.parallelism, ASKED_MAX), timeout_s=ASK_S)
    except SparkError as error:
        return Finding(NAME, "problem", in_a_line(error), "Until they answer, redo runs in the node only.")
    # One worker may have been quick enough to answer twice.
    workers = {(told["executable"], told["pid"]): told for told in map(json.loads, answers)}
    differences = [difference for told in workers.values() if (difference := _difference(told))]
    if differences:
        what = " | ".join(dict.fromkeys(differences))
        return Finding(NAME, "problem", f"{len(differences)} of {len(workers)} differ: {what}", ALIKE)
    told = next(iter(workers.values()))
    facts = f"Python {told['python']}, evenflow {told['evenflow']}, polars {told['polars']}, pyarrow {told['pyarrow']}"
    count = "1 worker" if len(workers) == 1 else f"{len(workers)} workers"
    kernel = told["fingerprint"]["self_test"]
    return Finding(NAME, "ok", f"{count}, all as here: {facts}; kernel {kernel} ({told['executable']})")


def _difference(told: dict[str, Any]) -> str:
    """What a worker has that we do not, in words; nothing if it is like us."""
    here = {"Python": platform.python_version(), "evenflow": evenflow.__version__}
    there = {"Python": told["python"], "evenflow": told["evenflow"]}
    unlike = [f"{name}: {here[name]} here, {there[name]} there" for name in here if here[name] != there[name]]
    kernel = kernel_fingerprint().difference(Fingerprint(**told["fingerprint"]))
    return "; ".join([*unlike, *([kernel] if kernel else [])])
