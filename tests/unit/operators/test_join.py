"""Band joins against a loop over all pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenflow as ef
from oracles import CUTS, ROW, Row, assert_rows, dicts, drive, frame, frames, operator_of, run

WITHIN = st.sampled_from([0, 1, 3, 8, 30])
Where = Callable[[Row, Row], bool]


def pairs(left: Sequence[Row], right: Sequence[Row], within: int | None, on: Sequence[tuple[str, str]], where: Where):
    """``(left, right)`` positions that match, by the later row's place and then by the earlier row's."""
    order = sorted(
        [(row["tuple_time"], 0, i) for i, row in enumerate(left)]
        + [(row["tuple_time"], 1, i) for i, row in enumerate(right)]
    )
    found = []
    for place, (_, side, i) in enumerate(order):
        for _, other_side, j in order[:place]:
            if side == other_side:
                continue
            mine, theirs = (left[i], right[j]) if side == 0 else (left[j], right[i])
            if any(mine[a] is None or mine[a] != theirs[b] for a, b in on):
                continue
            apart = abs(mine["tuple_time"] - theirs["tuple_time"])
            if (within is None or apart <= within) and where(mine, theirs):
                found.append((i, j) if side == 0 else (j, i))
    return found


def merged(mine: Row, theirs: Row | None, shared: Sequence[str], time: int) -> tuple[Any, ...]:
    rest = [name for name in ROW if name not in shared]
    return (time, *(mine[name] for name in ROW), *(theirs[name] if theirs else None for name in rest))


def expected(
    left: Sequence[Row],
    right: Sequence[Row],
    within: int | None,
    outer: bool,
    on: Sequence[tuple[str, str]] = (("k", "k"),),
    where: Where = lambda mine, theirs: True,
) -> list[tuple[Any, ...]]:
    shared = [a for a, b in on if a == b]
    found = pairs(left, right, within, on, where)
    out = [
        (max(left[i]["tuple_time"], right[j]["tuple_time"]), 1, merged(left[i], right[j], shared, 0)) for i, j in found
    ]
    if outer and within is not None:
        matched = {i for i, _ in found}
        alone = [row for i, row in enumerate(left) if i not in matched]
        out += [(row["tuple_time"] + within + 1, 0, merged(row, None, shared, 0)) for row in alone]
    return [(time, *row[1:]) for time, _, row in sorted(out, key=lambda entry: entry[:2])]


def assert_joined(actual: pl.DataFrame, answer: list[tuple[Any, ...]], right_column: str) -> None:
    """Exactly, but unmatched rows of one time, whose order among themselves is the operator's own, in any order."""
    place = actual.columns.index(right_column)

    def canonical(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        keyed = [(row[0], row[place] is not None, 0 if row[place] is not None else repr(row), row) for row in rows]
        return [entry[3] for entry in sorted(keyed, key=lambda entry: (entry[0], entry[1], str(entry[2])))]

    times = actual["tuple_time"].to_list()
    unmatched = actual[right_column].is_null().to_list()
    for before, after in zip(range(len(times)), range(1, len(times)), strict=False):
        assert not (times[before] == times[after] and unmatched[after] and not unmatched[before])
    by_time = pl.DataFrame(canonical(actual.rows()), schema=actual.schema, orient="row")
    assert_rows(by_time, canonical(answer))


@settings(max_examples=35, deadline=None)
@given(left=frames(), right=frames(), within=WITHIN | st.none(), cuts=CUTS)
def test_inner_join(left: pl.DataFrame, right: pl.DataFrame, within: int | None, cuts: list[int]) -> None:
    operator = operator_of(lambda a, b: a.join(b, on="k", within=within), 2)
    assert_rows(run(operator, [left, right], cuts), expected(dicts(left), dicts(right), within, outer=False))


@settings(max_examples=30, deadline=None)
@given(left=frames(), right=frames(), within=WITHIN | st.none(), cuts=CUTS)
def test_pairs_of_a_step_by_searching(
    left: pl.DataFrame, right: pl.DataFrame, within: int | None, cuts: list[int]
) -> None:
    operator = operator_of(lambda a, b: a.join(b, on="k", within=within), 2)
    swept = run(operator, [left, right], cuts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evenflow.operators.join.sweep", lambda *_: None)
        assert run(operator, [left, right], cuts).equals(swept)


@settings(max_examples=35, deadline=None)
@given(left=frames(), right=frames(), within=WITHIN, cuts=CUTS)
def test_left_join(left: pl.DataFrame, right: pl.DataFrame, within: int, cuts: list[int]) -> None:
    right = right.with_columns(pl.col("s").fill_null("?"))
    operator = operator_of(lambda a, b: a.join(b, on="k", within=within, how="left"), 2)
    answer = expected(dicts(left), dicts(right), within, outer=True)
    assert_joined(run(operator, [left, right], cuts), answer, "s_right")


@settings(max_examples=25, deadline=None)
@given(left=frames(), right=frames(), within=WITHIN, outer=st.booleans(), cuts=CUTS)
def test_join_where(left: pl.DataFrame, right: pl.DataFrame, within: int, outer: bool, cuts: list[int]) -> None:
    right = right.with_columns(pl.col("s").fill_null("?"))
    where = pl.col("x") < pl.col("x_right")
    how = "left" if outer else "inner"
    operator = operator_of(lambda a, b: a.join(b, on="k", within=within, how=how, where=where), 2)

    def holds(mine: Row, theirs: Row) -> bool:
        return mine["x"] is not None and theirs["x"] is not None and mine["x"] < theirs["x"]

    answer = expected(dicts(left), dicts(right), within, outer, where=holds)
    assert_joined(run(operator, [left, right], cuts), answer, "s_right")


@settings(max_examples=25, deadline=None)
@given(left=frames(), right=frames(), within=WITHIN, cuts=CUTS)
def test_join_of_differently_named_keys(left: pl.DataFrame, right: pl.DataFrame, within: int, cuts: list[int]) -> None:
    operator = operator_of(lambda a, b: a.join(b, left_on=["k", "s"], right_on=["x", "s"], within=within), 2)
    answer = expected(dicts(left), dicts(right), within, outer=False, on=[("k", "x"), ("s", "s")])
    out = run(operator, [left, right], cuts)
    assert out.columns == ["tuple_time", *ROW, "k_right", "x_right", "f_right", "ends_right"]
    assert_rows(out, answer)


def zero_and_nan(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(pl.Series("f", [[0.0, -0.0, float("nan"), None][i % 4] for i in range(rows.height)]))


def test_zeros_are_equal_keys_and_so_are_nans_but_not_nulls() -> None:
    operator = operator_of(lambda a, b: a.join(b, on="f", within=0), 2)
    rows = zero_and_nan(frame([{"tuple_time": 1, "x": i} for i in range(4)]))
    out = run(operator, [rows, rows], [])
    assert out.select("x", "x_right").rows() == [(0, 0), (1, 0), (0, 1), (1, 1), (2, 2)]


KEYS: list[tuple[pl.DataType, list[Any]]] = [
    (pl.Boolean(), [True, False, None]),
    (pl.String(), ["", "long " * 50, "é", None]),
    (pl.Binary(), [b"", b"\x00", b"\x00\x00", None]),
    (pl.Date(), [*pl.Series([3, 1]).cast(pl.Date).to_list(), None]),
    (pl.Datetime("ms"), [*pl.Series([3, 1]).cast(pl.Datetime("ms")).to_list(), None]),
    (pl.Enum(["u", "v"]), ["u", "v", None]),
    (pl.Decimal(20, 2), [*pl.Series(["1.50", "-2.25"]).str.to_decimal(scale=2).to_list(), None]),
    (pl.Int8(), [-1, 0, None]),
    (pl.UInt64(), [2**64 - 1, 0, None]),
    (pl.Int128(), [2**100, -1, None]),
    (pl.Float32(), [0.5, float("nan"), None]),
]


@pytest.mark.parametrize(("dtype", "values"), KEYS, ids=lambda value: str(value)[:12])
def test_every_key_type_joins_and_groups(dtype: pl.DataType, values: list[Any]) -> None:
    schema = {"k": dtype, "n": pl.Int64}
    rows = [{"tuple_time": t, "k": value, "n": t} for t, value in enumerate(values * 2)]
    data = frame(rows, schema)
    joined = run(operator_of(lambda a, b: a.join(b, on="k", within=None), 2, schema), [data, data], [2])
    half = len(values)
    expected_pairs = {(a, b) for a in range(2 * half) for b in range(2 * half) if a % half == b % half != half - 1}
    assert set(joined.select("n", "n_right").rows()) == expected_pairs
    counted = run(operator_of(lambda s: s.window(100, by="k").agg(n=ef.count()), 1, schema), [data], [2])
    assert counted["n"].to_list() == [2] * half


def test_equal_times_match_whichever_side_came_first() -> None:
    operator = operator_of(lambda a, b: a.join(b, on="k", within=0), 2)
    rows = frame([{"tuple_time": 4, "k": 1, "x": 1}, {"tuple_time": 4, "k": 1, "x": 2}])
    out = run(operator, [rows, rows], [])
    assert out.select("x", "x_right").rows() == [(1, 1), (2, 1), (1, 2), (2, 2)]


def test_an_unmatched_left_row_leaves_just_after_its_band() -> None:
    operator = operator_of(lambda a, b: a.join(b, on="k", within=5, how="left"), 2)
    rows = frame([{"tuple_time": 10, "k": 1}, {"tuple_time": 10, "k": None}])
    held = drive(operator, [rows, rows.clear()], [16])
    assert held.rows.is_empty()
    out = drive(operator, [rows, rows.clear()], [17], held.state, 16, held.boundary)
    assert out.rows["tuple_time"].to_list() == [16, 16]
    assert out.rows["x_right"].null_count() == 2


@settings(max_examples=30, deadline=None)
@given(left=frames(20), right=frames(20), within=st.sampled_from([0, 4]), cuts=CUTS)
def test_old_rows_do_not_stay(left: pl.DataFrame, right: pl.DataFrame, within: int, cuts: list[int]) -> None:
    operator = operator_of(lambda a, b: a.join(b, on="k", within=within, how="left"), 2)
    state = operator.settle(drive(operator, [left, right], [*cuts, 80]).state)
    assert state.left == state.right == state.matched == ()


def test_a_join_blocks_and_its_columns_are_suffixed() -> None:
    operator = operator_of(lambda a, b: a.join(b, on=["k", "s"], within=5), 2)
    assert operator.blocking
    out = run(operator, [frame([]), frame([])], [3])
    assert out.columns == ["tuple_time", *ROW, "x_right", "f_right", "ends_right"]


def test_a_stream_joins_itself() -> None:
    net = ef.Network("self")
    a = net.source("a", {"k": pl.Int64})
    a.join(a, on="k", within=1).output("pairs")
    rows = frame([{"tuple_time": t, "k": 1} for t in (0, 1, 3)], {"k": pl.Int64})
    assert ef.fold(net, {"a": rows})["pairs"]["tuple_time"].to_list() == [0, 1, 1, 1, 3]
