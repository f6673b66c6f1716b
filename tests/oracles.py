"""Plain answers to hold the operators against, and drivers that cut their input into steps."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl
from hypothesis import strategies as st

import evenflow as ef
from evenflow.operators.operator import HeadOperator
from evenflow.operators.times import FINAL, START

Row = dict[str, Any]
ROW = {"k": pl.Int64, "s": pl.String, "x": pl.Int64, "f": pl.Float64, "ends": pl.Int64}
NAN = math.nan

TIMES = st.integers(-20, 40)
CUTS = st.lists(st.integers(-22, 70), max_size=4)
FLOATS = st.sampled_from([None, 0.0, -0.0, 0.5, 0.1, -2.25, 3.0, 1e3, -1e-3, NAN])


def row_values(keys: int = 3, times: st.SearchStrategy[int] = TIMES) -> st.SearchStrategy[Row]:
    return st.fixed_dictionaries(
        {
            "tuple_time": times,
            "k": st.none() | st.integers(0, keys - 1),
            "s": st.sampled_from([None, "", "a", "b", "é"]),
            "x": st.none() | st.integers(-5, 5),
            "f": FLOATS,
            "ends": st.none() | st.integers(-20, 60),
        }
    )


def frame(rows: Iterable[Row], schema: Mapping[str, Any] | None = None) -> pl.DataFrame:
    """Rows by time, and at equal times as given."""
    ordered = sorted(rows, key=lambda row: row["tuple_time"])
    return pl.DataFrame(ordered, schema={"tuple_time": pl.Int64, **(ROW if schema is None else schema)}, orient="row")


def frames(
    max_size: int = 14, keys: int = 3, times: st.SearchStrategy[int] = TIMES, min_size: int = 0
) -> st.SearchStrategy[pl.DataFrame]:
    return st.lists(row_values(keys, times), min_size=min_size, max_size=max_size).map(frame)


def dicts(rows: pl.DataFrame) -> list[Row]:
    return rows.to_dicts()


def operator_of(build: Callable[..., ef.Stream], inputs: int = 1, schema: Mapping[str, Any] | None = None) -> Any:
    """The operator that a declaration makes, alone."""
    net = ef.Network("test")
    sources = [net.source(f"in{i}", ROW if schema is None else schema) for i in range(inputs)]
    return net.nodes[build(*sources).number].operator


class Driven(NamedTuple):
    """What a run gave: the last state, all rows, and the boundary behind them."""

    state: Any
    rows: pl.DataFrame
    boundary: int


def between(rows: pl.DataFrame, since: int, upto: int) -> pl.DataFrame:
    return rows.filter((pl.col("tuple_time") >= since) & (pl.col("tuple_time") < upto))


def drive(
    operator: Any,
    inputs: Sequence[pl.DataFrame],
    cuts: Iterable[int],
    state: Any = None,
    since: int = START,
    boundary: int = START,
) -> Driven:
    """Step through the input from ``since`` at these cuts, and check what every step promises."""
    state = operator.initial() if state is None else state
    parts: list[pl.DataFrame] = []
    for upto in sorted(cuts):
        slices = [between(rows, since, upto) for rows in inputs]
        step = operator.step(state, slices if isinstance(operator, HeadOperator) else slices[0], upto)
        check_step(step.rows, boundary, step.boundary)
        assert step.boundary >= upto
        parts.append(step.rows)
        state, since, boundary = step.state, upto, step.boundary
    return Driven(state, pl.concat(parts) if parts else pl.DataFrame(), boundary)


def check_step(rows: pl.DataFrame, before: int, after: int) -> None:
    stamps = rows["tuple_time"].to_list()
    assert after >= before, "a boundary fell"
    assert stamps == sorted(stamps), "rows are not ordered by time"
    assert all(before <= stamp < after for stamp in stamps), "a row lies outside of its step's boundaries"


def run(operator: Any, inputs: Sequence[pl.DataFrame], cuts: Iterable[int]) -> pl.DataFrame:
    """All that an operator gives for an input that ends."""
    return drive(operator, inputs, [*cuts, FINAL]).rows


def same_value(mine: Any, theirs: Any) -> bool:
    """Equal exactly, but floats to nine digits."""
    if isinstance(mine, float) and isinstance(theirs, float):
        return (math.isnan(mine) and math.isnan(theirs)) or math.isclose(mine, theirs, rel_tol=1e-9, abs_tol=1e-7)
    if isinstance(mine, list) and isinstance(theirs, list):
        return len(mine) == len(theirs) and all(map(same_value, mine, theirs))
    return type(mine) is type(theirs) and mine == theirs


def assert_rows(actual: pl.DataFrame, expected: Sequence[tuple[Any, ...]]) -> None:
    rows = actual.rows()
    assert len(rows) == len(expected), f"\n{rows}\n!=\n{list(expected)}"
    for mine, theirs in zip(rows, expected, strict=True):
        assert len(mine) == len(theirs)
        assert all(map(same_value, mine, theirs)), f"\n{mine}\n!=\n{theirs}"


def null_first(value: Any) -> tuple[int, Any]:
    """Polars' order of keys: null, then numbers, then NaN."""
    if value is None:
        return (0, 0)
    return (2, 0) if isinstance(value, float) and math.isnan(value) else (1, value)


def same_key(value: Any) -> Any:
    """A dict key that is equal for equal values: all NaN are one, and both zeros."""
    return "nan" if isinstance(value, float) and math.isnan(value) else value


def known(rows: Sequence[Row], column: str) -> list[Any]:
    return [row[column] for row in rows if row[column] is not None]


def extreme(rows: Sequence[Row], column: str, best: Callable[..., Any]) -> Any:
    """The best number; NaN only where there is no number, null only where there is no value."""
    values = known(rows, column)
    numbers = [value for value in values if not (isinstance(value, float) and math.isnan(value))]
    return best(numbers) if numbers else (values[0] if values else None)


def mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def deviation(values: Sequence[float]) -> float | None:
    return float(statistics.stdev(values)) if len(values) > 1 else None


INCREMENTAL: dict[str, ef.Aggregate] = {
    "n": ef.count(),
    "nx": ef.count("x"),
    "total": ef.sum("x"),
    "twice": ef.sum(pl.col("x") * 2),
    "mean": ef.mean("x"),
    "low": ef.min("f"),
    "high": ef.max("x"),
    "least": ef.min("s"),
    "dev": ef.std("x"),
    "first": ef.first("x"),
    "last": ef.last("s"),
}
CLOSING: dict[str, pl.Expr] = {
    "unique": pl.col("x").n_unique(),
    "median": pl.col("x").median(),
    "lower": pl.col("x").quantile(0.25, interpolation="lower"),
    "all": pl.col("x").implode(),
    "len": pl.len(),
}


def incremental(rows: Sequence[Row]) -> tuple[Any, ...]:
    """What ``INCREMENTAL`` means, over the rows of one window."""
    values = known(rows, "x")
    return (
        len(rows),
        len(values),
        sum(values),
        2 * sum(values),
        mean(values),
        extreme(rows, "f", min),
        extreme(rows, "x", max),
        extreme(rows, "s", min),
        deviation(values),
        rows[0]["x"],
        rows[-1]["s"],
    )


def closing(rows: Sequence[Row]) -> tuple[Any, ...]:
    """What ``CLOSING`` means, over the rows of one window."""
    values = known(rows, "x")
    lower = float(sorted(values)[math.floor(0.25 * (len(values) - 1))]) if values else None
    return (
        len({row["x"] for row in rows}),
        float(statistics.median(values)) if values else None,
        lower,
        [row["x"] for row in rows],
        len(rows),
    )


def both(rows: Sequence[Row]) -> tuple[Any, ...]:
    return incremental(rows) + closing(rows)
