"""Which expressions are row by row, and what is said of those that are not."""

from __future__ import annotations

import polars as pl
import pytest

import evenflow as ef

SCHEMA = {"x": pl.Int64, "f": pl.Float64, "s": pl.String, "l": pl.List(pl.Int64), "Filter": pl.Int64}
X = pl.col("x")

ACROSS = {
    "mean": X.mean(),
    "sum in arithmetic": X - X.sum(),
    "len": pl.len(),
    "count": X.count(),
    "first": X.first(),
    "shift": X.shift(1),
    "diff": X.diff(),
    "cum_sum": X.cum_sum(),
    "cum_count": X.cum_count(),
    "over": X.max().over("s"),
    "sort": X.sort(),
    "sort_by": X.sort_by("f"),
    "head": X.head(2),
    "slice": X.slice(1, 1),
    "rank": X.rank(),
    "reverse": X.reverse(),
    "unique": X.unique(),
    "is_unique": X.is_unique(),
    "is_first_distinct": X.is_first_distinct(),
    "rle_id": X.rle_id(),
    "forward_fill": X.forward_fill(),
    "fill by strategy": X.fill_null(strategy="forward"),
    "interpolate": X.interpolate(),
    "rolling": X.rolling_mean(3),
    "ewm": X.ewm_mean(com=1),
    "gather": X.gather([0]),
    "get": X.get(0),
    "filter": X.filter(X > 0),
    "drop_nulls": X.drop_nulls(),
    "explode": pl.col("l").explode(),
    "implode": X.implode(),
    "quantile": X.quantile(0.5),
    "shuffle": X.shuffle(seed=1),
    "sample": X.sample(n=1, seed=1),
    "arg_max": X.arg_max(),
    "search_sorted": X.search_sorted(3),
    "int_range": pl.int_range(pl.len()),
    "series": X + pl.Series([1, 2, 3]),
    "beside a list": pl.col("l").list.eval(pl.element() + 1).list.len() + X.shift(1),
    "when": pl.when(X.mean() < X).then(1).otherwise(0),
}


@pytest.fixture
def stream() -> ef.Stream:
    return ef.Network("t").source("a", SCHEMA)


@pytest.mark.parametrize("name", ACROSS)
def test_what_spans_rows_is_refused(name: str, stream: ef.Stream) -> None:
    with pytest.raises(ef.DeclarationError, match=r"with_columns.*(not computed row by row|makes several|at random)"):
        stream.with_columns(y=ACROSS[name])
    with pytest.raises(ef.DeclarationError, match="select"):
        stream.select(y=ACROSS[name])
    with pytest.raises(ef.DeclarationError, match="filter"):
        stream.filter(ACROSS[name] > 0)


ROW_BY_ROW = {
    "arithmetic": X * 2 + pl.col("f"),
    "when": pl.when(X > 0).then(pl.col("s")).otherwise(pl.lit("none")),
    "string": pl.col("s").str.to_uppercase().str.slice(0, 3),
    "list length": pl.col("l").list.len(),
    "list sum": pl.col("l").list.sum(),
    "list sort": pl.col("l").list.sort(),
    "list eval": pl.col("l").list.eval(pl.element() * 2),
    "sorted within a list": pl.col("l").list.eval(pl.element().sort()),
    "horizontal": pl.max_horizontal("x", "f"),
    "fill": X.fill_null(0),
    "cast": X.cast(pl.String),
    "is_in": X.is_in([1, 2]),
    "literal": pl.lit(7),
    "literal that sounds like one": pl.lit("Sort"),
    "column that sounds like one": pl.col("Filter") + 1,
    "time": pl.col("tuple_time") // 10,
    "struct": pl.struct("x", "f").struct.field("x"),
    "replace": X.replace_strict({1: 2}, default=0),
    "round": pl.col("f").round(1),
}


@pytest.mark.parametrize("name", ROW_BY_ROW)
def test_what_is_row_by_row_passes(name: str, stream: ef.Stream) -> None:
    assert "y" in stream.with_columns(y=ROW_BY_ROW[name]).schema


@pytest.mark.parametrize("alias", ["Filter", "Sort", "Len", "Agg", "plain"])
def test_a_column_may_have_any_name(alias: str, stream: ef.Stream) -> None:
    assert list(stream.select((X + 1).alias(alias)).schema) == [alias]


@pytest.mark.parametrize(
    "expression",
    [X.map_elements(hash, return_dtype=pl.Int64), X.map_batches(lambda s: s, return_dtype=pl.Int64)],
    ids=["map_elements", "map_batches"],
)
def test_python_functions_are_sent_to_map_rows(expression: pl.Expr, stream: ef.Stream) -> None:
    with pytest.raises(ef.DeclarationError, match=r"with_columns: .*Python function; use map_rows"):
        stream.with_columns(y=expression)
    with pytest.raises(ef.DeclarationError, match=r"window: y = .*Python function; write an evenflow.Aggregate"):
        stream.window("1s").agg(y=expression)


def test_a_random_aggregate_is_refused(stream: ef.Stream) -> None:
    with pytest.raises(ef.DeclarationError, match=r"window: y.*at random"):
        stream.window("1s").agg(y=X.shuffle().first())


def test_an_aggregate_of_many_values_is_refused(stream: ef.Stream) -> None:
    with pytest.raises(ef.DeclarationError, match=r"window: y = .*many values"):
        stream.window("1s").agg(y=X + 1)


def test_an_expression_that_cannot_be_computed_says_why(stream: ef.Stream) -> None:
    with pytest.raises(ef.DeclarationError, match=r"with_columns: y = .*cannot be computed"):
        stream.with_columns(y=pl.col("s").dt.year())


def test_counts_become_int64(stream: ef.Stream) -> None:
    schema = stream.window("1s").agg(n=pl.len(), u=X.n_unique(), m=X.median()).schema
    assert [schema[name] for name in ("n", "u", "m")] == [pl.Int64, pl.Int64, pl.Float64]
