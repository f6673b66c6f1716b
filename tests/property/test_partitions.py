"""One frame against key partitions, folded apart and merged by the canonical order."""

from __future__ import annotations

import random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenflow as ef
from evenflow.operators.keys import KeyRange, key_hash
from recipes import SCHEMA, Inputs, awkward_rows, bits

PLACED = {**SCHEMA, "place": pl.Int64}


def network() -> ef.Network:
    """Every keyed operator, over one key; rows carry their place in the merged input, to merge by."""
    net = ef.Network("partitioned")
    a, b = net.source("a", PLACED), net.source("b", PLACED)
    rows = net.union(a, b)
    floats = {"sum": ef.sum("x"), "mean": ef.mean("x"), "std": ef.std("x"), "high": ef.max("x")}
    closing = {"native": pl.col("x").sum(), "third": pl.col("x").mean() / 3, "kinds": pl.col("s").n_unique()}
    place = {"place": ef.last("place")}
    rows.window("100ms", by="k").agg(**floats, **closing).output("tumbling")
    rows.window("1s", every="300ms", by=["k", "s"]).agg(**floats).output("sliding")
    rows.session("50ms", by="k").agg(**floats, **closing).output("sessions")
    rows.window(rows=3, by="k").agg(**floats, **closing, **place).output("counted")
    rows.running(by="k").agg(**floats, **place).output("running")
    rows.distinct("k", within="20ms").output("distinct")
    a.join(b, on="k", within="30ms", how="left").output("joined")
    rows.window("200ms").top(2, by="n", per="k", ties=True).output("top")
    return net


ORDER = {
    "tumbling": ["tuple_time", "k"],
    "sliding": ["tuple_time", "k", "s"],
    "sessions": ["tuple_time", "k"],
    "counted": ["place"],
    "running": ["place"],
    "distinct": ["place"],
    "joined": ["tuple_time", "later", "key", "earlier"],
    "top": ["tuple_time", "k"],
}


def merge_key(name: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Unmatched rows of a left join come before all pairs of their time, by key and then place."""
    if name != "joined":
        return frame
    later = pl.max_horizontal("place", "place_right")
    earlier = pl.min_horizontal("place", "place_right")
    alone = pl.col("place_right").is_null()
    return frame.with_columns(
        later=pl.when(alone).then(-1).otherwise(later),
        key=pl.when(alone).then("k"),
        earlier=pl.when(alone).then("place").otherwise(earlier),
    )


def placed(inputs: Inputs) -> Inputs:
    both = pl.concat([frame.with_columns(source=pl.lit(name)) for name, frame in inputs.items()])
    both = both.sort("tuple_time", maintain_order=True).with_row_index("place").cast({"place": pl.Int64})
    return {name: both.filter(source=name).drop("source") for name in inputs}


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_partitions_merged_equal_the_whole(seed: int) -> None:
    rng = random.Random(seed)
    raw = {name: awkward_rows(rng, rng.randint(0, 150), rng.choice([3, 30]), 2_000_000) for name in ("a", "b")}
    inputs = placed(raw)
    net = network()
    whole = ef.fold(net, inputs)
    parts = rng.choice([2, 3, 7])
    merged: dict[str, list[pl.DataFrame]] = {name: [] for name in net.outputs}
    for number in range(parts):
        key_range = KeyRange.partition(number, parts)
        share = {name: f.filter(pl.Series(key_range.select(key_hash(f, ["k"])))) for name, f in inputs.items()}
        for name, frame in ef.fold(net, share).items():
            merged[name].append(frame)
    for name, frames in merged.items():
        together = merge_key(name, pl.concat(frames)).sort(ORDER[name], maintain_order=True)
        assert bits(together.select(whole[name].columns)) == bits(whole[name]), name


@pytest.mark.parametrize("parts", [1, 2, 5, 16])
def test_partitions_hold_every_key_once(parts: int) -> None:
    rows = awkward_rows(random.Random(1), 500, 50, 1_000)
    hashes = key_hash(rows, ["k", "s"])
    owners = sum(KeyRange.partition(number, parts).select(hashes).astype(int) for number in range(parts))
    assert (owners == 1).all()
