"""Filter, with_columns, select and union: row by row, wherever the input is cut."""

from __future__ import annotations

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

import evenflow as ef
from oracles import CUTS, ROW, assert_rows, dicts, frame, frames, operator_of, run

MANY = settings(max_examples=40, deadline=None)


@MANY
@given(rows=frames(), cuts=CUTS)
def test_filter_keeps_what_is_true_and_null_is_not(rows: pl.DataFrame, cuts: list[int]) -> None:
    operator = operator_of(lambda s: s.filter((pl.col("x") > 0) | (pl.col("tuple_time") < 0)))
    kept = [
        tuple(row.values()) for row in dicts(rows) if row["tuple_time"] < 0 or (row["x"] is not None and row["x"] > 0)
    ]
    assert_rows(run(operator, [rows], cuts), kept)
    assert operator.horizon == 0


@MANY
@given(rows=frames(), cuts=CUTS)
def test_filter_by_a_literal(rows: pl.DataFrame, cuts: list[int]) -> None:
    assert run(operator_of(lambda s: s.filter(pl.lit(True))), [rows], cuts).equals(rows)
    assert run(operator_of(lambda s: s.filter(pl.lit(False))), [rows], cuts).is_empty()


@MANY
@given(rows=frames(), cuts=CUTS)
def test_with_columns_adds_and_replaces_in_place(rows: pl.DataFrame, cuts: list[int]) -> None:
    operator = operator_of(lambda s: s.with_columns(pl.col("k").fill_null(9), t=pl.col("tuple_time") * 2, one=1))
    out = run(operator, [rows], cuts)
    assert out.columns == ["tuple_time", *ROW, "t", "one"]
    expected = [
        (*({**row, "k": 9 if row["k"] is None else row["k"]}.values()), row["tuple_time"] * 2, 1) for row in dicts(rows)
    ]
    assert_rows(out.cast({"one": pl.Int64}), expected)
    assert out.schema == run(operator, [rows.clear()], []).schema


@MANY
@given(rows=frames(), cuts=CUTS)
def test_select_gives_only_what_is_named(rows: pl.DataFrame, cuts: list[int]) -> None:
    swapped = run(operator_of(lambda s: s.select("x", k="x", x2=pl.col("k") + 1, c=7)), [rows], cuts)
    plus = {row["k"]: None if row["k"] is None else row["k"] + 1 for row in dicts(rows)}
    expected = [(row["tuple_time"], row["x"], row["x"], plus[row["k"]], 7) for row in dicts(rows)]
    assert_rows(swapped.cast({"c": pl.Int64}), expected)
    assert swapped.columns == ["tuple_time", "x", "k", "x2", "c"]
    plain = run(operator_of(lambda s: s.select("s", "k")), [rows], cuts)
    assert plain.equals(rows.select("tuple_time", "s", "k"))


def test_select_of_nothing_but_a_literal_gives_a_value_for_each_row() -> None:
    rows = frame([{"tuple_time": 1}, {"tuple_time": 2}])
    assert run(operator_of(lambda s: s.select(one=pl.lit(1))), [rows], [])["one"].to_list() == [1, 1]


@MANY
@given(parts=st.tuples(frames(8), frames(8), frames(8)), cuts=CUTS)
def test_union_orders_by_time_input_and_position(
    parts: tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame], cuts: list[int]
) -> None:
    operator = operator_of(lambda *streams: streams[0].network.union(*streams), 3)
    tagged = [(row["tuple_time"], place, i, row) for place, p in enumerate(parts) for i, row in enumerate(dicts(p))]
    expected = [tuple(entry[3].values()) for entry in sorted(tagged, key=lambda entry: entry[:3])]
    assert_rows(run(operator, parts, cuts), expected)
    assert not operator.blocking


@MANY
@given(parts=st.tuples(frames(8), frames(8)), cuts=CUTS)
def test_a_tie_break_comes_between_time_and_input(parts: tuple[pl.DataFrame, pl.DataFrame], cuts: list[int]) -> None:
    tie_break = [-pl.col("x").fill_null(0), pl.col("s").fill_null("")]
    operator = operator_of(lambda a, b: a.network.union(a, b, tie_break=tie_break), 2)
    tagged = [
        ((row["tuple_time"], -(row["x"] or 0), (row["s"] or "").encode(), place, i), tuple(row.values()))
        for place, part in enumerate(parts)
        for i, row in enumerate(dicts(part))
    ]
    assert_rows(run(operator, parts, cuts), [row for _, row in sorted(tagged, key=lambda entry: entry[0])])


def test_a_tie_break_may_be_the_name_of_a_column() -> None:
    net = ef.Network("ties")
    a, b = net.source("a", {"v": pl.Int64}), net.source("b", {"v": pl.Int64})
    net.union(a, b, tie_break="v").output("out")
    inputs = {
        name: frame([{"tuple_time": 1, "v": v} for v in values], {"v": pl.Int64})
        for name, values in {"a": [3, 1], "b": [2]}.items()
    }
    assert ef.fold(net, inputs)["out"]["v"].to_list() == [1, 2, 3]
