"""The suite can turn red: with Polars' own sums in place of left folds, its cases differ."""

from __future__ import annotations

import random
from typing import Any

import polars as pl
import pytest

import evenflow as ef
from evenflow.operators import aggregates
from evenflow.operators.grouping import Codes
from recipes import awkward_float, bits, few_keys, fold_sliced


def naive_sum(carried: pl.Series | None, values: pl.Series, codes: Codes, n: int) -> pl.Series:
    """A sum of the new rows as Polars makes it, then added to what was carried."""
    frame = pl.DataFrame({"code": codes, "x": values})
    sums = frame.group_by("code").agg(pl.col("x").sum()).sort("code")
    total = aggregates._carried(carried, n, float)
    total[sums["code"].to_numpy()] += sums["x"].to_numpy()
    return pl.Series(total)


def differs(seed: int) -> bool:
    net, inputs = few_keys(seed)
    frame = inputs["a"]
    at = sorted(random.Random(seed).sample(range(0, 3_000_000, 1000), 30))
    whole = dict(ef.fold(net, {"a": frame}))
    sliced = fold_sliced(net, {"a": frame}, 1_000, at)
    return bits(whole["sum"]) != bits(sliced["sum"])


def test_the_naive_kernel_turns_the_suite_red(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not any(differs(seed) for seed in range(3))
    monkeypatch.setattr(aggregates, "_add_sum", naive_sum)
    monkeypatch.setattr("evenflow.operators.window.FOLD_ROWS", 100)
    assert any(differs(seed) for seed in range(3))


def test_a_row_divided_alone_and_among_others_has_the_same_bits() -> None:
    """Polars divides a single value in another way than a column: found by the slicing test."""
    rng = random.Random(5)
    values = [v for v in (awkward_float(rng) for _ in range(200)) if v is not None]
    net = ef.Network("thirds")
    rows = net.source("a", {"x": pl.Float64})
    rows.with_columns(third=pl.col("x") / 3).output("third")
    rows.select(third=pl.col("x") / 3).output("selected")
    rows.map_batches(lambda frame: frame.with_columns(pl.col("x") / 3)).output("mapped")
    rows.window("1us").agg(third=pl.col("x").sum() / 3, inner=(pl.col("x") / 3).sum()).output("window")
    frame = pl.DataFrame(
        {"tuple_time": range(len(values)), "x": values}, schema={"tuple_time": pl.Int64, "x": pl.Float64}
    )
    whole: dict[str, Any] = dict(ef.fold(net, {"a": frame}))
    single = fold_sliced(net, {"a": frame}, 1, list(range(len(values))))
    assert all(bits(whole[name]) == bits(single[name]) for name in whole)


def test_minus_zero_is_zero_and_every_nan_is_one_nan() -> None:
    """Polars hands a column back when asked to add 0.0 to it, and -0.0 with it."""
    net = ef.Network("zeros")
    rows = net.source("a", {"f": pl.Float64})
    rows.window(10, by="f").agg(n=ef.count(), low=ef.min("f"), sum=ef.sum("f")).output("out")
    frame = pl.DataFrame({"tuple_time": [1, 2, 3, 4], "f": [-0.0, 0.0, float("nan"), -float("nan")]})
    out = ef.fold(net, {"a": frame})["out"]
    assert out["n"].to_list() == [2, 2]
    assert str(out["low"][0]) == str(out["sum"][0]) == str(out["f"][0]) == "0.0"
