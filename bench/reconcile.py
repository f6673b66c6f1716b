"""Redo after a failure, by method: how long until the heads meet, and what one row costs to compare and to fold.

One of two inputs is missing for D seconds of stream time while the tentative head folds what there is; then it
returns, and the time is taken until the stable head has caught up. The input that returns either brings rows (every
bucket changed) or turns out to be empty (none did).
"""

from __future__ import annotations

import gc
import platform
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

import evenflow as ef
from bench.workloads import BUCKET_US, SECOND_US
from evenflow.operators.kernel import FrameKernel
from evenflow.queries.compile import compile_plan
from evenflow.reconcile.checkpoint import CheckpointRedo
from evenflow.reconcile.heads import ChooseRedo, Heads
from evenflow.reconcile.undo import UndoRedo

Say = Callable[[str], None]
RATE = 100_000
"""Rows a second on the input that stays."""
KEYS = 1_000
SCHEMA = {"key": pl.Int64, "value": pl.Float64}
METHODS: dict[str, ChooseRedo[pl.DataFrame]] = {"checkpoint": CheckpointRedo, "undo": UndoRedo}


def _network() -> ef.Network:
    net = ef.Network("reconcile")
    rows = net.union(*(net.source(name, SCHEMA) for name in ("stays", "fails")))
    rows.window("1s", by="key").agg(n=ef.count(), total=ef.sum("value")).output("out")
    return net


def _rows(seconds: float, rate: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    n = int(seconds * rate)
    stamps = np.sort(rng.integers(0, int(seconds * SECOND_US), n))
    return pl.DataFrame({"tuple_time": stamps, "key": rng.integers(0, KEYS, n), "value": rng.random(n)})


def redo_seconds(method: str, seconds: int, changed: bool) -> tuple[float, int]:
    """How long redo takes, and how many rows it folded."""
    net = _network()
    heads = Heads(compile_plan(net.nodes, net.output_numbers), BUCKET_US, FrameKernel(), METHODS[method])
    stays, fails = (net.sources[name].number for name in ("stays", "fails"))
    live = _rows(seconds, RATE, 1)
    end = seconds * SECOND_US
    at = np.searchsorted(live["tuple_time"].to_numpy(), range(0, end + BUCKET_US, BUCKET_US))
    for i, boundary in enumerate(range(BUCKET_US, end + BUCKET_US, BUCKET_US)):
        heads.insert(stays, live.slice(int(at[i]), int(at[i + 1] - at[i])), boundary)
        heads.release(boundary)
    heads.insert(fails, _rows(seconds, RATE // 10, 2) if changed else live.clear(), end)
    gc.collect()
    start = time.perf_counter()
    done = heads.advance()
    taken = time.perf_counter() - start
    if heads.failing:
        raise RuntimeError(f"{method}: the heads did not meet")
    return taken, done.corrected


def run(quick: bool, say: Say) -> dict[str, Any]:
    lengths, runs = ((1, 5), 3) if quick else ((1, 5, 20), 5)
    rows: list[dict[str, Any]] = []
    for seconds in lengths:
        for changed in (False, True):
            row: dict[str, Any] = {"failure_s": seconds, "changed": changed}
            for method in METHODS:
                times, folded = zip(*(redo_seconds(method, seconds, changed) for _ in range(runs)), strict=True)
                row[f"{method}_ms"] = round(statistics.median(times) * 1e3, 2)
                row[f"{method}_rows"] = folded[0]
            say(f"{row}")
            rows.append(row)
    shares = [row["undo_ms"] / row["checkpoint_ms"] for row in rows if not row["changed"]]
    return {
        "benchmark": "reconcile",
        "machine": f"{platform.machine()}, Python {platform.python_version()}, polars {pl.__version__}",
        "rate_per_s": RATE,
        "runs": runs,
        "redo": rows,
        "compare_share": round(statistics.median(shares), 3),
    }


def failed_ratios(results: dict[str, Any]) -> list[str]:
    """Comparing must cost less than folding, or undo/redo has no reason to be."""
    share = results["compare_share"]
    return [f"comparing takes {share} of what folding takes"] if share >= 1 else []


def report(results: dict[str, Any]) -> str:
    return "\n".join(page(results))


def page(results: dict[str, Any]) -> list[str]:
    """The results as a part of the page."""
    return [
        "## Redo, by method",
        "",
        f"`python -m bench reconcile --save`, {results.get('date', 'now')}: {results['machine']}; one core, 1 s "
        f"windows by {KEYS:,} keys, {results['rate_per_s']:,} tuples/s, medians of {results['runs']} runs. "
        "Milliseconds from the return of the missing input until the heads meet. Where nothing changed, "
        "undo/redo only compares: "
        f"{results['compare_share']} of what folding takes.",
        "",
        "| failure | what returned | checkpoint, ms | rows folded | undo, ms | rows folded |",
        "| --- | --- | --- | --- | --- | --- |",
        *(
            f"| {row['failure_s']} s | {'rows in every bucket' if row['changed'] else 'nothing but boundaries'} | "
            f"{row['checkpoint_ms']} | {row['checkpoint_rows']:,} | {row['undo_ms']} | {row['undo_rows']:,} |"
            for row in results["redo"]
        ),
        "",
    ]
