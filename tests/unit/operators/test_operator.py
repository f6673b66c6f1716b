"""A user's own stateful operator, declared, folded, packed and merged like those that are built in."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
import pytest
from hypothesis import given, settings

import evenflow as ef
from evenflow.operators.keys import KeyRange
from evenflow.operators.operator import NoState, Schema
from evenflow.operators.packing import Segments
from evenflow.operators.times import FINAL
from oracles import CUTS, ROW, assert_rows, dicts, drive, frames, operator_of, run


@dataclass(frozen=True)
class Counted:
    n: int = 0
    last: Segments = ()


class Numbered(ef.Operator[Counted]):
    """Adds each row's number, and keeps the last row of each key."""

    state_type = Counted
    keys = ("k",)

    def schema(self, inputs: Schema) -> Schema:
        return {**inputs, "number": pl.Int64}

    def step(self, state: Counted, rows: pl.DataFrame, upto: int) -> ef.Step[Counted]:
        numbers = pl.int_range(state.n, state.n + rows.height, eager=True).alias("number")
        kept = pl.concat([*state.last, rows.select("tuple_time", "k")]).unique("k", keep="last", maintain_order=True)
        return ef.Step(Counted(state.n + rows.height, (kept,)), rows.with_columns(numbers), upto)


@settings(max_examples=30, deadline=None)
@given(rows=frames(), cuts=CUTS)
def test_it_folds_and_goes_through_a_pack(rows: pl.DataFrame, cuts: list[int]) -> None:
    operator = operator_of(lambda s: s.apply(Numbered()))
    expected = [(*row.values(), number) for number, row in enumerate(dicts(rows))]
    assert_rows(run(operator, [rows], cuts), expected)
    before = drive(operator, [rows], [5])
    state = operator.unpack(operator.pack(before.state))
    assert drive(operator, [rows], [FINAL], state, 5, 5).rows.height + before.rows.height == rows.height


@settings(max_examples=30, deadline=None)
@given(rows=frames())
def test_its_key_ranges_hold_each_key_once(rows: pl.DataFrame) -> None:
    operator = operator_of(lambda s: s.apply(Numbered()))
    state = drive(operator, [rows], [FINAL]).state
    parts = [operator.unpack(operator.pack(state, KeyRange.partition(i, 3))) for i in range(3)]
    keys = [key for part in parts for segment in part.last for key in segment["k"].to_list()]
    assert sorted(keys, key=str) == sorted({row["k"] for row in dicts(rows)}, key=str)
    assert sum(segment.height for segment in operator.merge(parts).last) == len(keys)


def test_it_runs_in_a_network() -> None:
    net = ef.Network("own")
    net.source("a", ROW).apply(Numbered()).filter(pl.col("number") == 1).output("second")
    rows = pl.DataFrame({"tuple_time": [4, 2]}).with_columns(pl.lit(None, dtype=t).alias(n) for n, t in ROW.items())
    assert ef.fold(net, {"a": rows})["second"]["tuple_time"].to_list() == [4]
    assert "numbered" in net.explain().lower()


def test_defaults_of_an_operator_without_state() -> None:
    operator = operator_of(lambda s: s.filter(pl.lit(True)))
    assert operator.initial() == NoState()
    assert operator.merge([NoState(), NoState()]) == NoState()
    assert Numbered().horizon is None
    assert Numbered().blocking is False


def test_states_with_other_scalars_do_not_merge() -> None:
    with pytest.raises(ef.InvariantError, match="Numbered: the states to merge"):
        Numbered().merge([Counted(1), Counted(2)])


def test_apply_takes_operators_only() -> None:
    with pytest.raises(ef.DeclarationError, match=r"apply: .* is not an operator"):
        ef.Network("n").source("a", ROW).apply(len)  # type: ignore[arg-type]
