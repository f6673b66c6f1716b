"""Packing, unpacking, merging and settling a state at any moment changes nothing that follows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenflow as ef
from evenflow.operators.keys import KeyRange, key_hash
from evenflow.operators.packing import Packed
from evenflow.operators.times import FINAL
from oracles import Driven, between, drive, frame, frames, operator_of

RUNNING: dict[str, ef.Aggregate] = {
    "n": ef.count("x"),
    "sum": ef.sum("f"),
    "dev": ef.std("f"),
    "low": ef.min("s"),
    "first": ef.first("x"),
    "last": ef.last("x"),
}
CLOSING: dict[str, pl.Expr] = {"all": pl.col("x").implode(), "unique": pl.col("s").n_unique()}
ALL: dict[str, Any] = {**RUNNING, **CLOSING}
WHERE = pl.col("x") <= pl.col("x_right")

OPERATORS: dict[str, tuple[int, Callable[..., ef.Stream]]] = {
    "tumbling": (1, lambda s: s.window(7, by="k").agg(**ALL)),
    "sliding": (1, lambda s: s.window(9, every=4, by=["k", "s"]).agg(**ALL)),
    "sampling": (1, lambda s: s.window(3, every=8, by="k").agg(**ALL)),
    "float keys": (1, lambda s: s.window(11, by="f").agg(n=ef.count(), xs=pl.col("x").implode())),
    "no keys": (1, lambda s: s.window(9, every=4).agg(sum=ef.sum("f"), **CLOSING)),
    "closing": (1, lambda s: s.window(9, every=4, by="k").agg(**CLOSING)),
    "until": (1, lambda s: s.window(until="ends", by="k").agg(**ALL)),
    "count": (1, lambda s: s.window(rows=3, by="k").agg(**ALL)),
    "session": (1, lambda s: s.session(6, by="k").agg(**ALL)),
    "running": (1, lambda s: s.running(by="k").agg(**RUNNING)),
    "running rows": (1, lambda s: s.running(by="k", rows=2).agg(**RUNNING)),
    "distinct": (1, lambda s: s.distinct("k", within=6)),
    "distinct floats": (1, lambda s: s.distinct(["f", "s"], within=9)),
    "window top": (1, lambda s: s.window(9, every=4, by="k").top(2, by="x", ties=True)),
    "until top": (1, lambda s: s.window(until="ends").top(1, by="x", per="k")),
    "inner join": (2, lambda a, b: a.join(b, on="k", within=5)),
    "inner join for ever": (2, lambda a, b: a.join(b, on="k", within=None)),
    "left join": (2, lambda a, b: a.join(b, on="k", within=4, how="left")),
    "left join where": (2, lambda a, b: a.join(b, left_on="k", right_on="x", within=7, how="left", where=WHERE)),
}
DENSE = st.integers(-3, 12)
INPUTS = st.tuples(frames(14, 2, DENSE, 4), frames(14, 2, DENSE, 4))
CUTS = st.lists(st.integers(-3, 22), max_size=3)
AT = st.integers(-3, 16)
EACH = pytest.mark.parametrize("name", OPERATORS)
FEW = settings(max_examples=7, deadline=None)


@cache
def operator(name: str) -> Any:
    count, build = OPERATORS[name]
    return operator_of(build, count)


def made(name: str, inputs: tuple[pl.DataFrame, pl.DataFrame]) -> tuple[Any, list[pl.DataFrame]]:
    return operator(name), list(inputs[: OPERATORS[name][0]])


def split(cuts: Sequence[int], at: int) -> tuple[list[int], list[int]]:
    return [*(cut for cut in cuts if cut < at), at], [*(cut for cut in cuts if cut > at), FINAL]


def gone_on(operator: Any, inputs: Sequence[pl.DataFrame], before: Driven, state: Any, cuts: Sequence[int], at: int):
    return drive(operator, inputs, cuts, state, at, before.boundary).rows


def assert_same(mine: pl.DataFrame, theirs: pl.DataFrame) -> None:
    assert mine.schema == theirs.schema
    assert mine.equals(theirs), f"\n{mine}\n!=\n{theirs}"


def through_bytes(packed: Packed) -> Packed:
    again = Packed.from_bytes(packed.to_bytes())
    assert again.same_as(packed)
    return again


def partition(operator: Any, rows: Sequence[pl.DataFrame], key_range: KeyRange) -> list[pl.DataFrame]:
    """The rows of each input whose key lies in a range."""
    keys = [operator.keys] if len(rows) == 1 else [operator.table_keys("left"), operator.table_keys("right")]
    return [
        part.filter(pl.Series(key_range.select(key_hash(part, names)), dtype=pl.Boolean))
        for part, names in zip(rows, keys, strict=True)
    ]


@EACH
@FEW
@given(inputs=INPUTS, cuts=CUTS, at=AT)
def test_a_state_goes_through_bytes(
    name: str, inputs: tuple[pl.DataFrame, pl.DataFrame], cuts: list[int], at: int
) -> None:
    op, rows = made(name, inputs)
    first, rest = split(cuts, at)
    before = drive(op, rows, first)
    expected = gone_on(op, rows, before, before.state, rest, at)
    state = op.unpack(through_bytes(op.pack(before.state)))
    assert_same(gone_on(op, rows, before, state, rest, at), expected)


@EACH
@FEW
@given(inputs=INPUTS, cuts=CUTS, at=AT, parts=st.integers(2, 4))
def test_key_ranges_of_a_state_merge_into_it(
    name: str, inputs: tuple[pl.DataFrame, pl.DataFrame], cuts: list[int], at: int, parts: int
) -> None:
    op, rows = made(name, inputs)
    first, rest = split(cuts, at)
    before = drive(op, rows, first)
    expected = gone_on(op, rows, before, before.state, rest, at)
    ranges = [KeyRange.partition(i, parts) for i in range(parts)]
    pieces = [op.unpack(through_bytes(op.pack(before.state, key_range))) for key_range in ranges]
    assert_same(gone_on(op, rows, before, op.merge(pieces), rest, at), expected)


@EACH
@FEW
@given(inputs=INPUTS, cuts=CUTS, at=AT, parts=st.integers(2, 3))
def test_a_key_range_goes_on_alone(
    name: str, inputs: tuple[pl.DataFrame, pl.DataFrame], cuts: list[int], at: int, parts: int
) -> None:
    op, rows = made(name, inputs)
    first, rest = split(cuts, at)
    before = drive(op, rows, first)
    expected = gone_on(op, rows, before, before.state, rest, at)
    found = []
    for key_range in (KeyRange.partition(i, parts) for i in range(parts)):
        state = op.unpack(op.pack(before.state, key_range))
        found.append(gone_on(op, partition(op, rows, key_range), before, state, rest, at))
    assert sorted(map(repr, pl.concat(found).rows())) == sorted(map(repr, expected.rows()))


@EACH
@FEW
@given(inputs=INPUTS, cuts=CUTS, at=AT, older_at=AT)
def test_a_delta_onto_an_older_state_is_the_newer_one(
    name: str, inputs: tuple[pl.DataFrame, pl.DataFrame], cuts: list[int], at: int, older_at: int
) -> None:
    op, rows = made(name, inputs)
    older_at, at = min(older_at, at), max(older_at, at)
    older = drive(op, rows, [*(cut for cut in cuts if cut < older_at), older_at])
    between_cuts = [*(cut for cut in cuts if older_at < cut < at), at]
    newer = drive(op, rows, between_cuts, older.state, older_at, older.boundary)
    rest = [*(cut for cut in cuts if cut > at), FINAL]
    base = op.unpack(through_bytes(op.pack(older.state)))
    delta = through_bytes(op.pack(newer.state, since=older.state))
    assert delta.rows <= op.pack(newer.state).rows
    expected = gone_on(op, rows, newer, newer.state, rest, at)
    assert_same(gone_on(op, rows, newer, op.unpack(delta, base), rest, at), expected)


@EACH
@FEW
@given(inputs=INPUTS, one=CUTS, other=CUTS, at=AT)
def test_settled_states_do_not_depend_on_the_cuts(
    name: str, inputs: tuple[pl.DataFrame, pl.DataFrame], one: list[int], other: list[int], at: int
) -> None:
    op, rows = made(name, inputs)
    states = [drive(op, rows, split(cuts, at)[0]).state for cuts in (one, other)]
    mine, theirs = (op.pack(op.settle(state)) for state in states)
    assert mine.same_as(theirs), f"\n{mine}\n!=\n{theirs}"


@EACH
@FEW
@given(inputs=INPUTS, cuts=CUTS, at=AT)
def test_a_settled_state_goes_on_alike(
    name: str, inputs: tuple[pl.DataFrame, pl.DataFrame], cuts: list[int], at: int
) -> None:
    op, rows = made(name, inputs)
    first, rest = split(cuts, at)
    before = drive(op, rows, first)
    expected = gone_on(op, rows, before, before.state, rest, at)
    assert_same(gone_on(op, rows, before, op.settle(before.state), rest, at), expected)


@EACH
@FEW
@given(inputs=INPUTS, cuts=CUTS, at=AT, parts=st.integers(2, 3))
def test_folds_of_key_partitions_merge_into_the_fold_of_all(
    name: str, inputs: tuple[pl.DataFrame, pl.DataFrame], cuts: list[int], at: int, parts: int
) -> None:
    op, rows = made(name, inputs)
    first, _ = split(cuts, at)
    whole = op.settle(drive(op, rows, first).state)
    ranges = [KeyRange.partition(i, parts) for i in range(parts)]
    states = [drive(op, partition(op, rows, key_range), first).state for key_range in ranges]
    merged = op.settle(op.merge(states))
    assert op.pack(merged).same_as(op.pack(whole)), f"\n{merged}\n!=\n{whole}"


@EACH
@FEW
@given(inputs=INPUTS, cuts=CUTS, at=AT)
def test_the_horizon_is_enough_to_rebuild_the_state(
    name: str, inputs: tuple[pl.DataFrame, pl.DataFrame], cuts: list[int], at: int
) -> None:
    op, rows = made(name, inputs)
    if op.horizon is None:
        return
    first, rest = split(cuts, at)
    before = drive(op, rows, first)
    recent = [between(part, at - op.horizon, at) for part in rows]
    rebuilt = drive(op, recent, [at]).state
    expected = gone_on(op, rows, before, before.state, rest, at)
    assert_same(gone_on(op, rows, before, rebuilt, rest, at), expected)


TIMED = [name for name in OPERATORS if name not in ("count", "session", "running", "running rows")]


@pytest.mark.parametrize("name", TIMED)
def test_states_that_have_not_come_equally_far_do_not_merge(name: str) -> None:
    op, nothing = made(name, (frame([]), frame([])))
    behind, ahead = (drive(op, nothing, [upto]).state for upto in (5, 9))
    with pytest.raises(ef.InvariantError, match="not folded up to the same time"):
        op.merge([behind, ahead])
