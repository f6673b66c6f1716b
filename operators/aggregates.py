"""Aggregates that are kept incrementally: ``count, sum, mean, min, max, std, first, last``.

Each is a left fold in stream order. ``lift`` turns every row into a small accumulator, ``fold`` adds accumulators
group by group in row order, ``final`` reads the result. A carried accumulator is just an earlier row, so it does
not matter where the input is cut; and partial sums of neighbouring panes fold the same way.

A user's own aggregate is a subclass of :class:`Aggregate`:

>>> class Product(Aggregate):
...     fields = ("log",)
...     def dtype(self, value):
...         return pl.Float64()
...     def lift(self, values):
...         return [values.log().fill_null(0.0)]
...     def fold(self, fields, groups):
...         return [pl.Series(groups.sum(fields[0].to_numpy()))]
...     def final(self, fields):
...         return fields[0].exp()
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenflow.operators.errors import DeclarationError
from evenflow.operators.grouping import Codes, Groups
from evenflow.operators.items import TUPLE_TIME
from evenflow.operators.keys import canonical_floats

Fields = Sequence[pl.Series]
Shared = dict[tuple[str, str], pl.Series]
"""By what it is and the name of the values it was made of; each group's rows: by ``_ROWS``."""
_ROWS = ("rows", "")


class Aggregate(ABC):
    """A left fold over one expression, with named accumulator fields."""

    fields: ClassVar[tuple[str, ...]]

    def __init__(self, value: str | pl.Expr) -> None:
        if not isinstance(value, str | pl.Expr):
            raise DeclarationError(f"{type(self).__name__.lower()}({value!r}): name a column or give an expression")
        self.value = pl.col(value) if isinstance(value, str) else value

    def __repr__(self) -> str:
        return f"{type(self).__name__.lower()}({self.value})"

    @abstractmethod
    def dtype(self, value: pl.DataType) -> pl.DataType:
        """The result's type; raises :class:`DeclarationError` where the value's type does not fit."""

    @abstractmethod
    def lift(self, values: pl.Series) -> list[pl.Series]:
        """Each row's own accumulator, field by field."""

    @abstractmethod
    def fold(self, fields: Fields, groups: Groups) -> list[pl.Series]:
        """One accumulator a group: those of its rows, folded from left to right."""

    @abstractmethod
    def final(self, fields: Fields) -> pl.Series:
        """The results of finished accumulators."""

    def extend(self, carried: Fields, values: pl.Series, codes: Codes, n: int, shared: Shared) -> list[pl.Series]:
        """Fold new rows onto carried accumulators: those of groups 0, 1, …; row i goes to group ``codes[i]`` of ``n``.

        It must give what ``fold`` gives over the carried ones and then the lifted rows; override it to be faster.
        ``shared`` holds sums and counts that other aggregates have made of the same rows and values in this step.
        """
        lifted = self.lift(values)
        if not carried:
            return self.fold(lifted, Groups(codes, n))
        known = np.arange(len(carried[0]))
        joined = [old.append(new).rechunk() for old, new in zip((f.clone() for f in carried), lifted, strict=True)]
        return self.fold(joined, Groups(np.concatenate((known, codes)), n))

    def scan(self, fields: Fields, groups: Groups) -> list[pl.Series]:
        """At every row the fold of its group so far. Only ``running`` over all rows needs it."""
        raise DeclarationError(f"{self!r} has no scan(), which running() needs: it gives the fold so far at each row")


def _over_groups(fields: Fields, groups: Groups, *expressions: pl.Expr) -> list[pl.Series]:
    frame = pl.DataFrame([field.alias(str(i)) for i, field in enumerate(fields)] + [pl.Series("group", groups.codes)])
    return [frame.select(expression.over("group")).to_series() for expression in expressions]


def _carried(field: pl.Series | None, n: int, dtype: Any) -> NDArray[Any]:
    """Accumulators of ``n`` groups to add to: the carried ones first, the others still zero."""
    total = np.zeros(n, dtype=dtype)
    if field is not None:
        total[: len(field)] = field.to_numpy()
    return total


def _add_count(carried: pl.Series | None, values: pl.Series, codes: Codes, n: int, shared: Shared) -> pl.Series:
    what = ("count", values.name)
    if what not in shared:
        shared[what] = pl.Series(_carried(carried, n, np.int64) + _counts(values, codes, n, shared).to_numpy())
    return shared[what]


def _counts(values: pl.Series, codes: Codes, n: int, shared: Shared) -> pl.Series:
    """How many of the new values each group has. (What was carried may differ where there were nulls before.)"""
    if values.null_count():
        return pl.Series(np.bincount(codes[values.is_not_null().to_numpy()], minlength=n))
    if _ROWS not in shared:
        shared[_ROWS] = pl.Series(np.bincount(codes, minlength=n))
    return shared[_ROWS]


def _add_sum(carried: pl.Series | None, values: pl.Series, codes: Codes, n: int) -> pl.Series:
    numbers = _numbers(values)
    total = _carried(carried, n, numbers.dtype)
    with np.errstate(invalid="ignore", over="ignore"):
        np.add.at(total, codes, numbers)
    return pl.Series(total)


def _add_floats(carried: pl.Series | None, values: pl.Series, codes: Codes, n: int, shared: Shared) -> pl.Series:
    what = ("floats", values.name)
    if what not in shared:
        shared[what] = _add_sum(carried, values.cast(pl.Float64), codes, n)
    return shared[what]


def _numbers(values: pl.Series) -> NDArray[Any]:
    """The values with nulls as zero, which a sum does not see."""
    return values.fill_null(0).to_numpy() if values.null_count() else values.to_numpy()


def _only_where(mask: NDArray[np.bool_], values: pl.Series) -> pl.Series:
    """The values, and null where the mask is false."""
    return values if mask.all() else pl.select(pl.when(pl.Series(mask)).then(values)).to_series()


class Count(Aggregate):
    """Rows, or the non-null values of an expression."""

    fields = ("n",)

    def __init__(self, value: str | pl.Expr = TUPLE_TIME) -> None:
        super().__init__(value)

    def dtype(self, value: pl.DataType) -> pl.DataType:
        return pl.Int64()

    def lift(self, values: pl.Series) -> list[pl.Series]:
        if values.null_count():
            return [values.is_not_null().cast(pl.Int64)]
        return [pl.Series(np.ones(len(values), dtype=np.int64))]

    def fold(self, fields: Fields, groups: Groups) -> list[pl.Series]:
        return [pl.Series(groups.sum(fields[0].to_numpy()))]

    def extend(self, carried: Fields, values: pl.Series, codes: Codes, n: int, shared: Shared) -> list[pl.Series]:
        return [_add_count(carried[0] if carried else None, values, codes, n, shared)]

    def final(self, fields: Fields) -> pl.Series:
        return fields[0]

    def scan(self, fields: Fields, groups: Groups) -> list[pl.Series]:
        return _over_groups(fields, groups, pl.col("0").cum_sum())


class Sum(Aggregate):
    """The sum; nulls count as nothing. Integers are summed as Int64, floats as Float64, from left to right."""

    fields = ("total",)

    def dtype(self, value: pl.DataType) -> pl.DataType:
        if value.is_float():
            return pl.Float64()
        if value in (pl.Int128, pl.UInt128):
            raise DeclarationError(f"{self!r}: {value} values are not summed; cast them to Int64 or Float64 first")
        if value.is_integer() or value == pl.Boolean:
            return pl.UInt64() if value == pl.UInt64 else pl.Int64()
        if isinstance(value, pl.Duration):
            return value
        raise DeclarationError(f"{self!r}: {value} values cannot be added up; cast them to a number first")

    def lift(self, values: pl.Series) -> list[pl.Series]:
        numbers = values.cast(self.dtype(values.dtype))
        if not numbers.null_count():
            return [numbers]
        return [numbers.to_physical().fill_null(0).cast(numbers.dtype)]

    def fold(self, fields: Fields, groups: Groups) -> list[pl.Series]:
        total = fields[0]
        return [pl.Series(groups.sum(total.to_physical().to_numpy())).cast(total.dtype)]

    def extend(self, carried: Fields, values: pl.Series, codes: Codes, n: int, shared: Shared) -> list[pl.Series]:
        dtype = self.dtype(values.dtype)
        before = carried[0].to_physical() if carried else None
        if dtype == pl.Float64:
            return [_add_floats(before, values, codes, n, shared)]
        return [_add_sum(before, values.cast(dtype).to_physical(), codes, n).cast(dtype)]

    def final(self, fields: Fields) -> pl.Series:
        return canonical_floats(fields[0]) if fields[0].dtype.is_float() else fields[0]

    def scan(self, fields: Fields, groups: Groups) -> list[pl.Series]:
        return _over_groups(fields, groups, pl.col("0").cum_sum())


class Mean(Aggregate):
    """The mean of the non-null values, null where there is none."""

    fields = ("total", "n")

    def dtype(self, value: pl.DataType) -> pl.DataType:
        if value.is_float() or value.is_integer() or value == pl.Boolean:
            return pl.Float64()
        raise DeclarationError(f"{self!r}: {value} values have no mean; cast them to a number first")

    def lift(self, values: pl.Series) -> list[pl.Series]:
        return [*Sum(self.value).lift(values.cast(pl.Float64)), *Count().lift(values)]

    def fold(self, fields: Fields, groups: Groups) -> list[pl.Series]:
        return [pl.Series(groups.sum(field.to_numpy())) for field in fields]

    def extend(self, carried: Fields, values: pl.Series, codes: Codes, n: int, shared: Shared) -> list[pl.Series]:
        total, seen = carried if carried else (None, None)
        return [_add_floats(total, values, codes, n, shared), _add_count(seen, values, codes, n, shared)]

    def final(self, fields: Fields) -> pl.Series:
        total, n = fields[0].to_numpy(), fields[1].to_numpy()
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = pl.Series(total / n)
        return canonical_floats(_only_where(n > 0, mean))

    def scan(self, fields: Fields, groups: Groups) -> list[pl.Series]:
        return _over_groups(fields, groups, pl.col("0").cum_sum(), pl.col("1").cum_sum())


class Std(Aggregate):
    """The sample standard deviation of the non-null values, null below two of them.

    Sums of distances to a shift, the group's first value: sums of plain squares would lose all digits of a small
    deviation around a large mean. An accumulator with another shift is moved to the group's first one, which is
    exact for single rows and for the carried accumulator, whose shift it is.
    """

    fields = ("shift", "n", "s1", "s2")

    dtype = Mean.dtype

    def lift(self, values: pl.Series) -> list[pl.Series]:
        zeros = pl.Series(np.zeros(len(values)))
        return [values.cast(pl.Float64), *Count().lift(values), zeros, zeros]

    def _moved(self, fields: Fields, shift: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        own, n, s1, s2 = (_numbers(field) for field in fields)
        with np.errstate(invalid="ignore", over="ignore"):
            delta = np.where(n > 0, own - shift, 0.0)
            return s1 + n * delta, s2 + 2.0 * delta * s1 + n * delta * delta

    def _shift(self, fields: Fields, groups: Groups) -> NDArray[np.float64]:
        """Each group's first value, or 0 where it has none."""
        filled = fields[1].to_numpy() > 0
        shift = np.zeros(groups.n)
        shift[groups.codes[filled][::-1]] = _numbers(fields[0])[filled][::-1]
        return shift

    def fold(self, fields: Fields, groups: Groups) -> list[pl.Series]:
        shift = self._shift(fields, groups)
        s1, s2 = self._moved(fields, shift[groups.codes])
        n = groups.sum(fields[1].to_numpy())
        return [pl.Series(column) for column in (shift, n, groups.sum(s1), groups.sum(s2))]

    def scan(self, fields: Fields, groups: Groups) -> list[pl.Series]:
        shift = self._shift(fields, groups)[groups.codes]
        s1, s2 = self._moved(fields, shift)
        columns = [pl.Series(s1), pl.Series(s2), fields[1]]
        sums = _over_groups(columns, groups, *(pl.col(str(i)).cum_sum() for i in range(3)))
        return [pl.Series(shift), sums[2], sums[0], sums[1]]

    def final(self, fields: Fields) -> pl.Series:
        _, n, s1, s2 = (field.to_numpy() for field in fields)
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            squares = np.maximum(s2 - s1 * s1 / n, 0.0)
            deviation = pl.Series(np.sqrt(squares / (n - 1)))
        return canonical_floats(_only_where(n > 1, deviation))


class _Extreme(Aggregate):
    fields = ("value",)
    largest: ClassVar[bool]

    def dtype(self, value: pl.DataType) -> pl.DataType:
        if value.is_nested() or value in (pl.Object, pl.Categorical, pl.Null):
            raise DeclarationError(f"{self!r}: {value} values have no order")
        return value

    def lift(self, values: pl.Series) -> list[pl.Series]:
        return [canonical_floats(values).cast(values.dtype) if values.dtype.is_float() else values]

    def fold(self, fields: Fields, groups: Groups) -> list[pl.Series]:
        values = fields[0]
        if values.dtype in (pl.String, pl.Binary, pl.Enum, pl.Decimal, pl.Int128, pl.UInt128):
            return [self._fold_any(values, groups)]
        if values.dtype == pl.Boolean:
            return [self._fold_physical(values.cast(pl.UInt8), groups).cast(pl.Boolean)]
        return [self._fold_physical(values.to_physical(), groups).cast(values.dtype)]

    def _fold_any(self, values: pl.Series, groups: Groups) -> pl.Series:
        frame = pl.DataFrame({"group": groups.codes, "value": values})
        best = pl.col("value").max() if self.largest else pl.col("value").min()
        return frame.group_by("group", maintain_order=True).agg(best).sort("group")["value"]

    def _fold_physical(self, values: pl.Series, groups: Groups) -> pl.Series:
        """NaN gives way to any number, and null to NaN: as Polars' own min and max have it."""
        numbers = _numbers(values)
        valid = values.is_not_null().to_numpy()
        nan = np.isnan(numbers) & valid if values.dtype.is_float() else np.zeros(len(numbers), dtype=bool)
        known = valid & ~nan
        if known.all():
            return pl.Series(groups.extreme(numbers, None, self.largest))
        best = groups.extreme(numbers, known, self.largest)
        has_number = groups.count(known) > 0
        has_nan = groups.count(nan) > 0
        if nan.any():
            best[~has_number & has_nan] = np.nan
        return _only_where(has_number | has_nan, pl.Series(best))

    def final(self, fields: Fields) -> pl.Series:
        return canonical_floats(fields[0]).cast(fields[0].dtype) if fields[0].dtype.is_float() else fields[0]

    def scan(self, fields: Fields, groups: Groups) -> list[pl.Series]:
        """A running extreme is the extreme of each row's prefix; NaN again gives way to numbers."""
        value = pl.col("0").fill_nan(None) if fields[0].dtype.is_float() else pl.col("0")
        if fields[0].dtype in (pl.String, pl.Binary, pl.Enum, pl.Decimal, pl.Boolean):
            return [self._scan_ranked(fields[0], groups)]
        best = (value.cum_max() if self.largest else value.cum_min()).forward_fill()
        if fields[0].dtype.is_float():
            best = best.fill_null(pl.when(pl.col("0").is_nan().fill_null(False)).then(pl.col("0")).forward_fill())
        return _over_groups(fields, groups, best)

    def _scan_ranked(self, values: pl.Series, groups: Groups) -> pl.Series:
        """Types without a cumulative extreme go by their rank, which orders them alike."""
        frame = pl.DataFrame({"value": values, "rank": values.rank("dense").cast(pl.Int64)})
        rank = self.scan([frame["rank"]], groups)[0]
        by_rank = frame.drop_nulls().unique("rank")
        ranked = pl.DataFrame({"rank": rank}).join(by_rank, on="rank", how="left", maintain_order="left")
        return ranked["value"]


class Min(_Extreme):
    """The smallest value."""

    largest = False


class Max(_Extreme):
    """The largest value."""

    largest = True


class _Positional(Aggregate):
    fields = ("value",)

    def dtype(self, value: pl.DataType) -> pl.DataType:
        return value

    def lift(self, values: pl.Series) -> list[pl.Series]:
        return [values]

    def final(self, fields: Fields) -> pl.Series:
        return fields[0]


class First(_Positional):
    """The value of the first row, null or not."""

    def fold(self, fields: Fields, groups: Groups) -> list[pl.Series]:
        return [fields[0][groups.first()]]

    def scan(self, fields: Fields, groups: Groups) -> list[pl.Series]:
        return [fields[0][groups.first()[groups.codes]]]


class Last(_Positional):
    """The value of the last row, null or not."""

    def fold(self, fields: Fields, groups: Groups) -> list[pl.Series]:
        return [fields[0][groups.last()]]

    def scan(self, fields: Fields, groups: Groups) -> list[pl.Series]:
        return [fields[0]]
