"""The core workloads, each as a network and as the fastest forms of the same work that Polars has as one batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

import evenflow as ef

SECOND_US = 1_000_000
BUCKET_US = 100_000
RATE = 1_000_000
"""Tuples per second of stream time, over all inputs."""
KEYS = 10_000
WITHIN_US = 10_000

Frames = Mapping[str, pl.DataFrame]
Batch = Callable[[Frames], pl.DataFrame]


@dataclass(frozen=True)
class Workload:
    """A network, its input, and batch forms of the same work by name."""

    title: str
    network: ef.Network
    inputs: Frames
    batches: Mapping[str, Batch]
    target: float
    """Million tuples per second."""


def _stamps(rng: np.random.Generator, seconds: int, share: int) -> np.ndarray:
    return np.sort(rng.integers(0, seconds * SECOND_US, RATE * seconds // share))


def _packets(seconds: int, strings: bool = False) -> Frames:
    rng = np.random.default_rng(7)
    frames = {}
    for name in ("a", "b", "c"):
        stamps = _stamps(rng, seconds, 3)
        keys = pl.Series("key", rng.integers(0, KEYS, len(stamps)))
        if strings:
            keys = pl.Series("key", [f"host-{i:05d}" for i in range(KEYS)])[keys.to_numpy()]
        frames[name] = pl.DataFrame({"tuple_time": stamps, "key": keys, "value": rng.random(len(stamps)) * 100})
    return frames


def _merged(network: ef.Network, key: type[pl.DataType]) -> ef.Stream:
    schema = {"key": key, "value": pl.Float64}
    union = network.union(*(network.source(name, schema) for name in ("a", "b", "c")))
    return union.filter(pl.col("value") > 5).with_columns(scaled=pl.col("value") * 8 + 1)


def _batch_rows(frames: Frames, stable: bool = True) -> pl.DataFrame:
    rows = pl.concat(frames.values()).sort("tuple_time", maintain_order=stable)
    return rows.filter(pl.col("value") > 5).with_columns(scaled=pl.col("value") * 8 + 1)


def _lazy_rows(frames: Frames) -> pl.LazyFrame:
    rows = pl.concat([frame.lazy() for frame in frames.values()]).sort("tuple_time", maintain_order=True)
    return rows.filter(pl.col("value") > 5).with_columns(scaled=pl.col("value") * 8 + 1)


def filter_map(seconds: int) -> Workload:
    network = ef.Network("filter_map")
    _merged(network, pl.Int64).output("out")
    batches: dict[str, Batch] = {
        "eager: concat, stable sort, filter, with_columns": _batch_rows,
        "eager: concat, sort, filter, with_columns": lambda frames: _batch_rows(frames, stable=False),
        "lazy: concat, stable sort, filter, with_columns": lambda frames: _lazy_rows(frames).collect(),
    }
    return Workload("3-way SUnion, filter, map", network, _packets(seconds), batches, 20.0)


def window(seconds: int, strings: bool) -> Workload:
    network = ef.Network("window")
    rows = _merged(network, pl.String if strings else pl.Int64)
    aggregates = {"n": ef.count(), "total": ef.sum("scaled"), "mean": ef.mean("scaled")}
    rows.window("1s", by="key").agg(**aggregates).output("out")
    by = [(pl.col("tuple_time") // SECOND_US).alias("window"), pl.col("key")]
    agg = [pl.len().alias("n"), pl.col("scaled").sum().alias("total"), pl.col("scaled").mean().alias("mean")]
    batches: dict[str, Batch] = {
        "eager: sort, filter, with_columns, group_by, sort": lambda frames: (
            _batch_rows(frames).group_by(by).agg(agg).sort("window", "key")
        ),
        "lazy: sort, filter, with_columns, group_by, sort": lambda frames: (
            _lazy_rows(frames).group_by(by).agg(agg).sort("window", "key").collect()
        ),
    }
    kind = "string" if strings else "integer"
    title = f"3-way SUnion, filter, map, 1 s count/sum/mean by {KEYS:,} {kind} keys"
    return Workload(title, network, _packets(seconds, strings), batches, 10.0)


def join(seconds: int) -> Workload:
    network = ef.Network("join")
    left = network.source("left", {"key": pl.Int64, "x": pl.Float64})
    right = network.source("right", {"key": pl.Int64, "y": pl.Float64})
    left.join(right, on="key", within=WITHIN_US).output("out")
    rng = np.random.default_rng(11)
    inputs = {}
    for name, column in (("left", "x"), ("right", "y")):
        stamps = _stamps(rng, seconds, 2)
        size = len(stamps)
        inputs[name] = pl.DataFrame(
            {"tuple_time": stamps, "key": rng.integers(0, KEYS, size), column: rng.random(size)}
        )
    return Workload(f"join on {KEYS:,} keys within 10 ms", network, inputs, {_JOIN_FORM: _batch_join}, 4.0)


_JOIN_FORM = "eager: sort both, equi-join on key and time bucket (right side in three), filter, sort by later row"


def _batch_join(frames: Frames) -> pl.DataFrame:
    cell = (pl.col("tuple_time") // WITHIN_US).alias("cell")
    left = frames["left"].sort("tuple_time").with_columns(cell).with_row_index("l")
    right = frames["right"].sort("tuple_time").with_columns(cell).with_row_index("r")
    spread = pl.concat([right.with_columns(pl.col("cell") + d) for d in (-1, 0, 1)])
    pairs = left.join(spread, on=["key", "cell"]).filter(
        (pl.col("tuple_time") - pl.col("tuple_time_right")).abs() <= WITHIN_US
    )
    return pairs.sort(pl.max_horizontal("tuple_time", "tuple_time_right"), "l", "r")
