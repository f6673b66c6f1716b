"""The stable head folds complete buckets, once, whatever the order in which inputs come."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenflow as ef
from evenflow.operators.kernel import FrameKernel
from evenflow.operators.times import FINAL, START
from evenflow.queries.compile import compile_plan
from evenflow.reconcile.heads import Heads
from oracles import ROW, between, frame, frames


def network() -> ef.Network:
    net = ef.Network("head")
    a, b = net.source("a", ROW), net.source("b", ROW)
    both = net.union(a, b)
    both.window(9, every=4, by="k").agg(n=ef.count(), total=ef.sum("x")).output("windows")
    a.filter(pl.col("x") > 0).join(b, on="k", within=6, how="left").output("joined")
    both.output("both")
    return net


def head_of(net: ef.Network, bucket: int) -> Heads[pl.DataFrame]:
    return Heads(compile_plan(net.nodes, net.output_numbers), bucket, FrameKernel())


@settings(max_examples=30, deadline=None)
@given(a=frames(10), b=frames(10), bucket=st.integers(1, 30), data=st.data())
def test_deliveries_in_any_order_give_what_fold_gives(
    a: pl.DataFrame, b: pl.DataFrame, bucket: int, data: st.DataObject
) -> None:
    net = network()
    head = head_of(net, bucket)
    parts: dict[str, list[Any]] = {name: [] for name in net.outputs}
    boundaries = dict.fromkeys(net.outputs, START)
    reached = [START, START]
    inputs = [a, b]
    for place in [*data.draw(st.lists(st.integers(0, 1), max_size=8)), 0, 1]:
        last = data.draw(st.booleans()) or len(parts) == 0
        upto = FINAL if last and reached[1 - place] == FINAL else max(reached[place], data.draw(st.integers(-20, 45)))
        head.insert(place, between(inputs[place], reached[place], upto), upto)
        reached[place] = upto
        for output in head.advance().outputs:
            assert output.boundary >= boundaries[output.name]
            assert all(output.rows["tuple_time"] >= boundaries[output.name])
            assert all(output.rows["tuple_time"] < output.boundary)
            boundaries[output.name] = output.boundary
            parts[output.name].append(output.rows)
    for place in (0, 1):
        head.insert(place, between(inputs[place], reached[place], FINAL), FINAL)
    for output in head.advance().outputs:
        parts[output.name].append(output.rows)
    expected = ef.fold(net, {"a": a, "b": b})
    for name, pieces in parts.items():
        assert pl.concat(pieces).equals(expected[name].drop("tuple_id", "tuple_type"))


def test_nothing_happens_while_an_input_is_missing() -> None:
    net = network()
    head = head_of(net, 10)
    before = head.checkpoint
    head.insert(0, frame([{"tuple_time": 3, "k": 1, "x": 1}]), 50)
    names = {output.name for output in head.advance().outputs}
    assert "both" not in names
    assert "windows" not in names
    assert len(before) == len(head.checkpoint)
    head.insert(1, frame([]), 20)
    both = [output for output in head.advance().outputs if output.name == "both"]
    assert [(output.rows.height, output.boundary) for output in both] == [(1, 20)]
    assert head.advance().outputs == []


def test_a_checkpoint_is_a_reference_that_later_folding_does_not_change() -> None:
    net = ef.Network("ref")
    net.source("a", ROW).running(by="k").agg(n=ef.count()).output("n")
    rows = frame([{"tuple_time": t, "k": 1} for t in range(6)])
    head = head_of(net, 1)
    head.insert(0, rows.head(3), 3)
    head.advance()
    checkpoint = head.snapshot()
    head.insert(0, rows.tail(3), 6)
    (later,) = head.advance().outputs
    assert later.rows["n"].to_list() == [4, 5, 6]
    again = head_of(net, 1)
    again.restore(checkpoint)
    again.insert(0, rows.tail(3), 6)
    (redone,) = again.advance().outputs
    assert redone.rows.equals(later.rows)


def test_a_broken_promise_stops_the_head() -> None:
    head = head_of(network(), 10)
    head.insert(0, frame([]), 20)
    with pytest.raises(ef.InvariantError, match="before its boundary 20"):
        head.insert(0, frame([{"tuple_time": 5}]), 30)
