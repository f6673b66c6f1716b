"""The fold in process, on one core, beside the fastest batch of the same work in the same run."""

from __future__ import annotations

import gc
import platform
import resource
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import polars as pl

import evenflow as ef
from bench.workloads import BUCKET_US, SECOND_US, Frames, Workload, filter_map, join, window
from evenflow.operators.kernel import FrameKernel
from evenflow.operators.soutput import SOutput
from evenflow.operators.times import FINAL
from evenflow.queries.compile import compile_plan
from evenflow.reconcile.heads import Heads

Say = Callable[[str], None]
Results = dict[str, Any]
BATCH_RATIO = 0.5


class Engine:
    """A stable head with an SOutput on its one output, driven bucket by bucket."""

    def __init__(self, network: ef.Network) -> None:
        self.network = network
        self.head = Heads(compile_plan(network.nodes, network.output_numbers), BUCKET_US, FrameKernel())
        self.soutput = SOutput(FrameKernel())

    def feed(self, slices: Frames, boundary: int) -> int:
        """One bucket of every source; gives how many rows came out."""
        for name, rows in slices.items():
            self.head.insert(self.network.sources[name].number, rows, boundary)
        rows_out = 0
        for output in self.head.advance().outputs:
            rows_out += self.soutput.emit(output.rows, output.boundary).rows.height
        return rows_out


def buckets(inputs: Frames) -> list[tuple[Frames, int]]:
    """Each source's rows of every bucket, as frames of their own, and the boundary behind them."""
    end = max(int(frame["tuple_time"].max() or 0) for frame in inputs.values())  # type: ignore[call-overload]
    bounds = [*range(BUCKET_US, end + BUCKET_US, BUCKET_US)]
    slices: list[dict[str, pl.DataFrame]] = [{} for _ in bounds]
    for name, frame in inputs.items():
        at = np.searchsorted(frame["tuple_time"].to_numpy(), bounds)
        for i, (low, high) in enumerate(zip([0, *at[:-1]], at, strict=True)):
            slices[i][name] = frame.slice(int(low), int(high - low))
    return list(zip(slices, [*bounds[:-1], FINAL], strict=True))


def best_of(runs: int, work: Callable[[], Any]) -> list[float]:
    times = []
    for _ in range(runs):
        gc.collect()
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return times


def throughput(workload: Workload, runs: int, say: Say) -> Results:
    """Million tuples per second: the engine's, and the fastest batch form's."""
    tuples = sum(frame.height for frame in workload.inputs.values())
    steps = buckets(workload.inputs)

    def engine() -> int:
        runner = Engine(workload.network)
        return sum(runner.feed(slices, boundary) for slices, boundary in steps)

    rows_out = engine()
    ours = best_of(runs, engine)
    forms = {name: best_of(runs, lambda work=work: work(workload.inputs)) for name, work in workload.batches.items()}
    fastest = min(forms, key=lambda name: statistics.median(forms[name]))
    rows_batch = workload.batches[fastest](workload.inputs).height
    if rows_batch != rows_out:
        raise RuntimeError(f"{workload.title}: the engine gave {rows_out} rows and the batch {rows_batch}")
    rate, batch = (tuples / statistics.median(times) / 1e6 for times in (ours, forms[fastest]))
    say(f"{workload.title}: {rate:.1f} M tuples/s, batch {batch:.1f} M/s, ratio {rate / batch:.2f}")
    return {
        "title": workload.title,
        "tuples": tuples,
        "rows_out": rows_out,
        "mtuples_per_s": round(rate, 2),
        "mtuples_per_s_spread": [round(tuples / t / 1e6, 2) for t in (max(ours), min(ours))],
        "target_mtuples_per_s": workload.target,
        "batch_mtuples_per_s": round(batch, 2),
        "batch_form": fastest,
        "ratio_to_batch": round(rate / batch, 3),
    }


def small_bucket(say: Say) -> Results:
    """An almost empty bucket (one row of three inputs) through SUnion, five operators and SOutput."""
    net = ef.Network("small")
    schema = {"key": pl.Int64, "value": pl.Float64}
    rows = net.union(*(net.source(name, schema) for name in ("a", "b", "c")))
    rows = rows.filter(pl.col("value") > 0).with_columns(scaled=pl.col("value") * 2)
    rows = rows.select("key", "scaled").filter(pl.col("scaled") < 1e9)
    rows.window("10s", by="key").agg(total=ef.sum("scaled")).output("out")
    runner = Engine(net)
    empty = pl.DataFrame(schema={"tuple_time": pl.Int64, **schema})
    times = []
    for i in range(1_000):
        row = pl.DataFrame({"tuple_time": [i * BUCKET_US], "key": [i % 5], "value": [1.0]})
        slices = {name: row if place == i % 3 else empty for place, name in enumerate(("a", "b", "c"))}
        start = time.perf_counter()
        runner.feed(slices, (i + 1) * BUCKET_US)
        times.append((time.perf_counter() - start) * 1e3)
    result = {"median_ms": round(statistics.median(times), 3), "p99_ms": round(sorted(times)[989], 3), "target_ms": 1.0}
    say(f"an almost empty bucket through five operators: {result['median_ms']} ms (p99 {result['p99_ms']} ms)")
    return result


def checkpoint(say: Say, large: int) -> Results:
    """What it costs to keep a checkpoint, go on, and return to it, for a small and for a large state."""
    result: Results = {}
    for rows in (1_000, large):
        net = ef.Network("checkpoint")
        schema = {"key": pl.Int64, "value": pl.Float64}
        net.source("a", schema).join(net.source("b", schema), on="key", within=None).output("out")
        runner = Engine(net)
        frame = pl.DataFrame({"tuple_time": np.arange(rows), "key": np.arange(rows), "value": np.zeros(rows)})
        boundary = (rows // BUCKET_US + 1) * BUCKET_US
        runner.feed({"a": frame, "b": frame.clear()}, boundary)
        gc.collect()
        before = _resident_mb()
        start = time.perf_counter()
        kept = [runner.head.checkpoint for _ in range(10_000)]
        each_ns = (time.perf_counter() - start) / 10_000 * 1e9
        added_mb = _resident_mb() - before
        result[str(rows)] = {"kept": len(kept), "keep_ns": round(each_ns, 1), "added_mb": round(added_mb, 1)}
        say(f"keeping a checkpoint of {rows:,} rows of state: {each_ns:.0f} ns")
    return result


def memory(say: Say, minutes: int) -> Results:
    """Resident memory at the end of each minute of stream time, at 20,000 tuples a second."""
    net = ef.Network("memory")
    schema = {"key": pl.Int64, "value": pl.Float64}
    rows = net.union(net.source("a", schema), net.source("b", schema))
    rows.window("1s", every="500ms", by="key").agg(total=ef.sum("value"), kinds=pl.col("key").n_unique()).output("out")
    runner = Engine(net)
    sizes = []
    for minute in range(minutes):
        for slices, boundary in _minute(minute):
            runner.feed(slices, boundary)
        gc.collect()
        sizes.append(round(_resident_mb(), 1))
    settled = sizes[len(sizes) // 5] if len(sizes) >= 5 else sizes[0]
    say(f"memory over {minutes} minutes of stream time: {sizes[0]} MB … {sizes[-1]} MB")
    return {"minutes": minutes, "resident_mb": sizes, "last_to_settled": round(sizes[-1] / settled, 3)}


def _minute(minute: int) -> Iterator[tuple[Frames, int]]:
    rng = np.random.default_rng(minute)
    for bucket in range(minute * 60 * SECOND_US, (minute + 1) * 60 * SECOND_US, BUCKET_US):
        slices = {
            name: pl.DataFrame(
                {
                    "tuple_time": np.sort(rng.integers(bucket, bucket + BUCKET_US, 1_000)),
                    "key": rng.integers(0, 1_000, 1_000),
                    "value": rng.random(1_000),
                }
            )
            for name in ("a", "b")
        }
        yield slices, bucket + BUCKET_US


def _resident_mb() -> float:
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize() / 2**20


def run(quick: bool, say: Say) -> Results:
    seconds, runs = (2, 3) if quick else (5, 5)
    results: Results = {
        "benchmark": "core",
        "machine": f"{platform.machine()}, Python {platform.python_version()}, polars {pl.__version__}",
        "bucket_ms": BUCKET_US // 1000,
        "runs": runs,
    }
    for name, workload in (
        ("a_filter_map", lambda: filter_map(seconds)),
        ("b_window_int", lambda: window(seconds, strings=False)),
        ("b_window_string", lambda: window(seconds, strings=True)),
        ("c_join", lambda: join(seconds)),
    ):
        results[name] = throughput(workload(), runs, say)
    results["small_bucket"] = small_bucket(say)
    results["checkpoint"] = checkpoint(say, 1_000_000 if quick else 10_000_000)
    results["memory"] = memory(say, 2 if quick else 10)
    return results


def _throughputs(results: Results) -> list[Results]:
    return [result for result in results.values() if isinstance(result, dict) and "ratio_to_batch" in result]


def failed_ratios(results: Results) -> list[str]:
    """Workloads whose ratio to the batch of the same run is below its target."""
    return [
        f"{result['title']}: {result['ratio_to_batch']} of the batch, at least {BATCH_RATIO} wanted"
        for result in _throughputs(results)
        if result["ratio_to_batch"] < BATCH_RATIO
    ]


def report(results: Results) -> str:
    small, kept = results["small_bucket"], results["checkpoint"]
    return "\n".join(
        [
            f"core, one core, {results['bucket_ms']} ms buckets, {results['machine']}",
            *(
                f"  {result['title']}: {result['mtuples_per_s']} M tuples/s (target {result['target_mtuples_per_s']}), "
                f"batch {result['batch_mtuples_per_s']}, ratio {result['ratio_to_batch']}"
                for result in _throughputs(results)
            ),
            f"  an almost empty bucket through five operators: {small['median_ms']} ms (p99 {small['p99_ms']})",
            *(f"  keeping a checkpoint of {int(rows):,} rows: {one['keep_ns']} ns" for rows, one in kept.items()),
            f"  resident MB by minute of stream time: {results['memory']['resident_mb']}",
        ]
    )
