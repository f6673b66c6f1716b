"""Checkpoint/redo and undo/redo give the same stable output; what each folds and holds differs."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import evenflow as ef
from evenflow.reconcile.checkpoint import CheckpointRedo
from evenflow.reconcile.undo import UndoRedo
from monitors import ROW, SECOND, SOURCES, assert_even, counted, steady


def branches() -> ef.Network:
    """Two sources merged; behind them a filter that keeps nothing of m2 (its ``k`` is 9), and windows on both."""
    net = ef.Network("branches")
    merged = net.union(*(net.source(name, ROW) for name in ("m1", "m2"))).named("merged")
    kept = net.union(merged.filter(pl.col("k") < 9), net.source("m3", ROW)).named("kept")
    kept.window("300ms", by="k").agg(n=ef.count()).output("unchanged")
    merged.output("changed")
    return net


def one_branch_changes() -> dict[str, pl.DataFrame]:
    inputs = steady(20)
    inputs["m2"] = inputs["m2"].with_columns(k=pl.lit(9, pl.Int64))
    return inputs


def redone(net: ef.Network, inputs: dict[str, pl.DataFrame], reconcile: Any) -> ef.Result:
    result = ef.simulate(net, inputs, [ef.Cut("m2", "5s", "12s")], seed=5, x="1s", reconcile=reconcile)
    assert_even(result)
    assert result.redos.height > 0
    return result


@pytest.mark.parametrize("size", ["200ms", "1s", "3s"])
def test_both_methods_give_the_same_stable_rows(size: str) -> None:
    checkpoint, undo = (redone(counted(size), steady(20), method) for method in ("checkpoint", "undo"))
    assert checkpoint.stable("out").equals(undo.stable("out"))
    assert set(checkpoint.redos["method"]) == {"checkpoint"}
    assert set(undo.redos["method"]) == {"undo"}
    assert set(undo.redos["executor"]) == {"local"}


def test_undo_folds_fewer_rows_where_only_one_branch_changed() -> None:
    checkpoint, undo = (redone(branches(), one_branch_changes(), method) for method in ("checkpoint", "undo"))
    assert undo.n_tentative("unchanged") > 0, "the branch was worked on tentatively"
    assert undo.redos["rows"].sum() < 0.75 * checkpoint.redos["rows"].sum()
    started = undo.controls.filter(pl.col("kind") == "UNDO_START")["stream"].to_list()
    assert started
    assert not any("kept" in stream for stream in started), "undo travels only where something changed"


def test_auto_picks_undo_where_changes_may_not_reach_and_checkpoint_at_the_inputs() -> None:
    result = redone(branches(), one_branch_changes(), "auto")
    fragments = result.run.nodes["main/1"].heads.fragments
    chosen = {fragment.redo.name for fragment in fragments if fragment.places[0].name is None}
    assert chosen == {"undo"}
    at_input = [fragment.redo.name for fragment in fragments if all(place.name for place in fragment.places)]
    assert set(at_input) == {"checkpoint"}
    assert set(result.redos["method"]) == {"checkpoint", "undo"}
    checkpoint = redone(branches(), one_branch_changes(), "checkpoint")
    assert result.redos["rows"].sum() < checkpoint.redos["rows"].sum()


def test_an_operator_without_a_horizon_falls_back_to_its_reference() -> None:
    net = ef.Network("running")
    merged = net.union(*(net.source(name, ROW) for name in ("m1", "m2", "m3")))
    merged.running(by="k").agg(n=ef.count()).output("out")
    result = redone(net, steady(20), "undo")
    assert result.redos["method"].to_list() == ["checkpoint"]
    assert result.redos["fell_back"].to_list() == [True]


def test_undo_holds_no_state_reference_during_a_failure() -> None:
    held = {}
    for method in ("checkpoint", "undo"):
        faults = [ef.Cut("m2", "5s", "30s")]
        result = ef.simulate(counted(), steady(30), faults, seed=5, x="1s", reconcile=method, until="15s")
        (fragment,) = result.run.nodes["main/1"].heads.fragments
        assert fragment.tentative is not None
        held[method] = fragment.redo
    assert isinstance(held["checkpoint"], CheckpointRedo)
    assert held["checkpoint"].references == 1
    assert isinstance(held["undo"], UndoRedo)
    assert held["undo"].references == 0
    assert held["undo"].state is None


def running() -> ef.Network:
    net = ef.Network("running")
    net.union(*(net.source(name, ROW) for name in SOURCES)).running().agg(n=ef.count()).output("out")
    return net


def tentative_after(result: ef.Result, second: float) -> dict[str, Any]:
    """The first tentative row that came after a time."""
    items = [item for time, item in result.items("out") if isinstance(item, ef.Tentative) and time > second * SECOND]
    return dict(items[0].rows.row(0, named=True))


def before(inputs: dict[str, pl.DataFrame], **seconds: float) -> int:
    """How many rows each source had before a time."""
    return sum(inputs[name].filter(pl.col("tuple_time") < at * SECOND).height for name, at in seconds.items())


def test_tentative_rows_rest_on_what_has_been_corrected_meanwhile() -> None:
    """m2's rows of the first failure are in the count by the time only m1 is missing, though the heads never met."""
    inputs = steady(20)
    faults = [ef.Cut("m2", "3s", "8s"), ef.Cut("m1", "7s", "16s")]
    result = ef.simulate(running(), inputs, faults, seed=2, x="1s")
    assert_even(result)
    assert result.states()["state"].to_list()[1:4] == ["UP_FAILURE", "STABILIZATION", "UP_FAILURE"]
    row = tentative_after(result, 12)
    now = row["tuple_time"] / SECOND
    assert abs(row["n"] - before(inputs, m1=7, m2=now, m3=now)) <= 10


@pytest.mark.parametrize("reconcile", ["checkpoint", "undo"])
def test_a_second_failure_starts_from_the_stable_state(reconcile: str) -> None:
    inputs = steady(20)
    faults = [ef.Cut("m2", "3s", "6s"), ef.Cut("m1", "10s", "16s")]
    result = ef.simulate(running(), inputs, faults, seed=2, x="1s", reconcile=reconcile)
    assert_even(result)
    row = tentative_after(result, 13)
    now = row["tuple_time"] / SECOND
    assert abs(row["n"] - before(inputs, m1=10, m2=now, m3=now)) <= 10
