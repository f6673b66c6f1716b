"""The eight incremental aggregates one by one, over every type they take, and a user's own."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenflow as ef
from evenflow.operators.aggregates import Fields
from evenflow.operators.grouping import Groups
from oracles import deviation, frame, mean, operator_of, run, same_value

FLOATS = st.lists(st.none() | st.floats(-1e6, 1e6), max_size=12)


def over(aggregate: Any, values: list[Any], dtype: Any, cuts: list[int] | None = None) -> Any:
    """The aggregate of one window that holds these values."""
    schema = {"v": dtype}
    operator = operator_of(lambda s: s.window(100).agg(out=aggregate), schema=schema)
    rows = frame([{"tuple_time": t, "v": value} for t, value in enumerate(values)], schema)
    return run(operator, [rows], cuts or [])["out"]


@settings(max_examples=25, deadline=None)
@given(values=FLOATS.filter(bool), cut=st.integers(0, 12))
def test_float_aggregates_against_exact_sums(values: list[float | None], cut: int) -> None:
    numbers = [value for value in values if value is not None]
    assert same_value(over(ef.sum("v"), values, pl.Float64, [cut])[0], math.fsum(numbers))
    assert same_value(over(ef.mean("v"), values, pl.Float64, [cut])[0], mean(numbers))
    found, exact = over(ef.std("v"), values, pl.Float64, [cut])[0], deviation(numbers)
    assert (found is None) == (exact is None)
    assert exact is None or math.isclose(found, exact, rel_tol=1e-6, abs_tol=1e-6)


def test_std_keeps_its_digits_around_a_large_mean() -> None:
    values = [1e9 + offset for offset in (0.0, 0.25, 0.5, 0.75)]
    assert math.isclose(over(ef.std("v"), values, pl.Float64, [2])[0], 0.3227486121839514, rel_tol=1e-9)


SUMS = [
    (pl.Int8, [100, 100, None], 200, pl.Int64),
    (pl.UInt8, [200, 100], 300, pl.Int64),
    (pl.Int64, [2**62, -(2**62), 5], 5, pl.Int64),
    (pl.UInt64, [2**63, 1], 2**63 + 1, pl.UInt64),
    (pl.Boolean, [True, None, True, False], 2, pl.Int64),
    (pl.Float32, [0.5, None], 0.5, pl.Float64),
    (pl.Int64, [None, None], 0, pl.Int64),
    (pl.Duration("us"), [timedelta(seconds=1), timedelta(seconds=2)], timedelta(seconds=3), pl.Duration("us")),
    (pl.Duration("ms"), [timedelta(seconds=1), None], timedelta(seconds=1), pl.Duration("ms")),
]


@pytest.mark.parametrize(("dtype", "values", "total", "result"), SUMS, ids=str)
def test_sums_of_every_type(dtype: Any, values: list[Any], total: Any, result: Any) -> None:
    out = over(ef.sum("v"), values, dtype, [1])
    assert out.to_list() == [total]
    assert out.dtype == result
    assert over(ef.sum("v"), values, dtype).to_list() == [total]


EXTREMES = [
    (pl.String, ["b", None, "ab"], "ab", "b"),
    (pl.Boolean, [None, True, False], False, True),
    (pl.Int16, [-3, None, 7], -3, 7),
    (pl.UInt64, [2**64 - 1, 3], 3, 2**64 - 1),
    (pl.Float64, [float("nan"), None, 2.0, -1.0], -1.0, 2.0),
    (pl.Float64, [None, None], None, None),
    (pl.Int64, [None], None, None),
    (pl.Binary, [b"b", b"a"], b"a", b"b"),
    (pl.Duration("us"), [timedelta(1), None, timedelta(2)], timedelta(1), timedelta(2)),
]


@pytest.mark.parametrize(("dtype", "values", "low", "high"), EXTREMES, ids=str)
def test_extremes_of_every_type(dtype: Any, values: list[Any], low: Any, high: Any) -> None:
    assert over(ef.min("v"), values, dtype, [1]).to_list() == [low]
    assert over(ef.max("v"), values, dtype, [1]).to_list() == [high]


def test_the_extreme_of_nothing_but_nan_is_nan_and_of_an_enum_goes_by_its_order() -> None:
    assert math.isnan(over(ef.max("v"), [None, float("nan")], pl.Float64)[0])
    sizes = pl.Enum(["small", "large", "huge"])
    assert over(ef.max("v"), ["large", "huge", None], sizes, [1]).to_list() == ["huge"]
    assert over(ef.min("v"), ["large", "huge", None], sizes, [1]).to_list() == ["large"]


@pytest.mark.parametrize("aggregate", [ef.min("v"), ef.max("v"), ef.sum("v")])
def test_a_result_is_never_a_negative_zero(aggregate: ef.Aggregate) -> None:
    assert math.copysign(1.0, over(aggregate, [-0.0, -0.0], pl.Float64, [1])[0]) == 1.0


def test_first_and_last_take_null_as_it_is() -> None:
    assert over(ef.first("v"), [None, 1], pl.Int64, [1]).to_list() == [None]
    assert over(ef.last("v"), [1, None], pl.Int64, [1]).to_list() == [None]
    assert over(ef.last("v"), [[1], [2, 3]], pl.List(pl.Int64), [1]).to_list() == [[2, 3]]


def test_count_counts_rows_or_values() -> None:
    assert over(ef.count(), [None, 1, None], pl.Int64, [1]).to_list() == [3]
    assert over(ef.count("v"), [None, 1, None], pl.Int64, [1]).to_list() == [1]
    assert over(ef.count(pl.col("v") > 0), [None, 1, -1], pl.Int64, [1]).to_list() == [2]


class Product(ef.Aggregate):
    """A user's own fold: the product, by a loop, with its scan."""

    fields = ("product",)

    def dtype(self, value: pl.DataType) -> pl.DataType:
        if not value.is_integer():
            raise ef.DeclarationError(f"{self!r}: only whole numbers are multiplied")
        return pl.Int64()

    def lift(self, values: pl.Series) -> list[pl.Series]:
        return [values.cast(pl.Int64).fill_null(1)]

    def fold(self, fields: Fields, groups: Groups) -> list[pl.Series]:
        products = [1] * groups.n
        for code, value in zip(groups.codes.tolist(), fields[0].to_list(), strict=True):
            products[code] *= value
        return [pl.Series(products, dtype=pl.Int64)]

    def final(self, fields: Fields) -> pl.Series:
        return fields[0]


BUILDS: list[Callable[[ef.Stream], ef.Stream]] = [
    lambda s: s.window(100).agg(out=Product("v")),
    lambda s: s.window(until="ends").agg(out=Product("v")),
    lambda s: s.window(rows=5).agg(out=Product("v")),
    lambda s: s.session(50).agg(out=Product("v")),
]


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("cuts", [[], [1], [2, 4], [1, 2, 3]])
def test_a_user_s_aggregate_folds_in_every_window(build: Callable[[ef.Stream], ef.Stream], cuts: list[int]) -> None:
    schema = {"v": pl.Int64, "ends": pl.Int64}
    rows = frame([{"tuple_time": t, "v": v, "ends": 9} for t, v in enumerate([2, -3, None, 5, 7])], schema)
    assert run(operator_of(build, schema=schema), [rows], cuts)["out"].to_list() == [-210]


def test_a_user_s_aggregate_without_scan_cannot_run() -> None:
    with pytest.raises(ef.DeclarationError, match=r"product.*has no scan\(\)"):
        operator_of(lambda s: s.running().agg(out=Product("v")), schema={"v": pl.Int64})


BAD: list[tuple[ef.Aggregate, Any, str]] = [
    (ef.sum("v"), pl.String, "String values cannot be added up"),
    (ef.mean("v"), pl.String, "String values have no mean"),
    (ef.std("v"), pl.Date, "Date values have no mean"),
    (ef.max("v"), pl.List(pl.Int64), "have no order"),
    (Product("v"), pl.Float64, "only whole numbers"),
]


@pytest.mark.parametrize(("aggregate", "dtype", "message"), BAD, ids=str)
def test_values_of_the_wrong_type_are_refused(aggregate: ef.Aggregate, dtype: Any, message: str) -> None:
    with pytest.raises(ef.DeclarationError, match=message):
        over(aggregate, [], dtype)
