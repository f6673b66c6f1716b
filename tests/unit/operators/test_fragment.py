"""A fragment is one fold over its operators: states, leaves, horizon, pack and unpack."""

from __future__ import annotations

from typing import Any

import polars as pl
from hypothesis import given, settings

import evenflow as ef
from evenflow.operators.fragment import Fragment
from evenflow.operators.packing import Packed
from evenflow.operators.times import FINAL, START
from evenflow.queries.compile import compile_plan
from oracles import CUTS, ROW, between, frames


def network() -> ef.Network:
    net = ef.Network("f")
    positive = net.source("a", ROW).filter(pl.col("x") > 0)
    positive.window(6, by="k").agg(n=ef.count(), total=ef.sum("x")).distinct("k", within=9).output("sums")
    positive.running(by="k").agg(n=ef.count()).output("running")
    positive.output("positive")
    return net


def fragment_of(net: ef.Network) -> Fragment:
    (fragment,) = compile_plan(net.nodes, net.output_numbers).fragments
    return fragment


def folded(fragment: Fragment, rows: pl.DataFrame, cuts: list[int], repack: int | None = None) -> dict[int, Any]:
    state, since, out = fragment.initial(), START, {leaf: [] for leaf in fragment.leaves}
    for place, upto in enumerate([*sorted(cuts), FINAL]):
        state, leaves = fragment.step(state, [between(rows, since, upto)], upto)
        for leaf, (part, _) in leaves.items():
            out[leaf].append(part)
        since = upto
        if place == repack:
            state = fragment.unpack([Packed.from_bytes(packed.to_bytes()) for packed in fragment.pack(state)])
            state = fragment.settle(state)
    return {leaf: pl.concat(parts) for leaf, parts in out.items()}


@settings(max_examples=30, deadline=None)
@given(rows=frames(), cuts=CUTS)
def test_cuts_packs_and_settling_change_nothing(rows: pl.DataFrame, cuts: list[int]) -> None:
    fragment = fragment_of(network())
    whole = folded(fragment, rows, [])
    in_parts = folded(fragment, rows, cuts, repack=len(cuts) // 2)
    assert whole.keys() == in_parts.keys() == set(fragment.leaves)
    assert all(whole[leaf].equals(in_parts[leaf]) for leaf in whole)


def test_a_leaf_s_boundary_is_that_of_its_last_operator() -> None:
    net = network()
    fragment = fragment_of(net)
    rows = pl.DataFrame({"tuple_time": [1]}).with_columns(pl.lit(None, dtype=t).alias(n) for n, t in ROW.items())
    _, leaves = fragment.step(fragment.initial(), [rows], 8)
    numbers = net.output_numbers
    assert {name: leaves[number][1] for name, number in numbers.items()} == {"sums": 12, "running": 8, "positive": 8}


def test_a_delta_of_a_fragment_shares_what_has_not_changed() -> None:
    net = ef.Network("d")
    net.source("a", {"k": pl.Int64}).distinct("k", within=1000).output("out")
    fragment = fragment_of(net)
    older, _ = fragment.step(fragment.initial(), [pl.DataFrame({"tuple_time": [1, 2], "k": [1, 2]})], 5)
    newer, _ = fragment.step(older, [pl.DataFrame(schema={"tuple_time": pl.Int64, "k": pl.Int64})], 9)
    delta = fragment.pack(newer, since=older)
    assert sum(packed.rows for packed in delta) == 0
    back = fragment.unpack(delta, base=older)
    assert back[-1].seen[0] is older[-1].seen[0]


def test_horizons_add_up_along_a_path() -> None:
    net = ef.Network("h")
    a = net.source("a", ROW).filter(pl.col("x") > 0)
    a.window(6, by="k").agg(n=ef.count()).distinct("k", within=9).output("long")
    a.distinct("k", within=11).output("short")
    assert fragment_of(net).horizon == 15
    assert fragment_of(network()).horizon is None


def test_a_fragment_blocks_if_one_of_its_operators_does() -> None:
    net = ef.Network("b")
    a, b = net.source("a", ROW), net.source("b", ROW)
    a.join(b, on="k", within=5).filter(pl.col("x") > 0).output("out")
    assert fragment_of(net).blocking
    assert not fragment_of(network()).blocking
