"""The little that ports, buckets, heads and outputs need of rows, so that they never look into one.

Two kernels do it: :class:`FrameKernel` for Polars frames, and :class:`ListKernel` for lists of tuples whose first
field is the ``tuple_time``, on which campaigns of many thousand schedules run several times faster.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, Protocol, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenflow.operators.items import TUPLE_TIME
from evenflow.operators.times import FINAL, START

R = TypeVar("R")
TieBreak = Sequence[pl.Expr]


class Kernel(Protocol[R]):
    """Count, concatenate, skip, split and merge rows by time."""

    def count(self, rows: R) -> int: ...

    def concat(self, parts: Sequence[R]) -> R:
        """The parts one after the other; there is at least one."""
        ...

    def earliest(self, rows: R) -> int:
        """The smallest ``tuple_time``, or ``FINAL`` if there is no row."""
        ...

    def latest(self, rows: R) -> int:
        """The largest ``tuple_time``, or ``START`` if there is no row."""
        ...

    def same(self, mine: R, theirs: R) -> bool:
        """Whether both are the same rows to the bit, in the same order."""
        ...

    def head(self, rows: R, n: int) -> R:
        """The first ``n`` rows."""
        ...

    def skip(self, rows: R, n: int) -> R:
        """The rows without the first ``n``."""
        ...

    def split(self, rows: R, time: int) -> tuple[R, R]:
        """Rows with a ``tuple_time`` below ``time``, and the others; each keeps its order."""
        ...

    def buckets(self, rows: R, width_us: int) -> Iterable[tuple[int, R]]:
        """The rows by ``tuple_time // width_us``; each part keeps its order."""
        ...

    def merge(self, parts: Sequence[R]) -> R:
        """One sequence ordered by ``(tuple_time, part, position)``."""
        ...


def times(rows: pl.DataFrame) -> NDArray[np.int64]:
    """The rows' ``tuple_time`` as an array, without a copy where the rows lie in one chunk."""
    return rows[TUPLE_TIME].to_numpy()


def is_sorted(values: NDArray[Any]) -> bool:
    return bool((values[1:] >= values[:-1]).all())


def stack(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The parts one below the other in one chunk. (``pl.concat`` costs much more on small frames.)"""
    full = [part for part in parts if part.height] or [parts[0]]
    first, rest = full[0], full[1:]
    for part in rest:
        first = first.vstack(part)
    return first.rechunk()


def keep(rows: pl.DataFrame, mask: pl.Series) -> pl.DataFrame:
    """The rows where ``mask`` is true. (Column by column, it skips the query planner, which small frames feel.)"""
    return pl.DataFrame([column.filter(mask) for column in rows.get_columns()])


def take(rows: pl.DataFrame, index: NDArray[np.int64]) -> pl.DataFrame:
    """The rows at these positions, in this order. (Column by column and with Polars' own index type it is faster.)"""
    at = pl.Series(index.astype(np.uint32))
    return pl.DataFrame([column[at] for column in rows.get_columns()])


def at_least_two(columns: Iterable[pl.Series]) -> pl.DataFrame:
    """The columns as a frame in one chunk; a single row twice.

    Polars divides a column by a number as multiplication by its inverse, but a single value really: the last bit
    of ``x / 3`` would tell how the input was cut. So no expression is ever evaluated over one row, nor over a column
    that Polars keeps as one repeated value, as it does after ``lit`` or ``vstack``.
    """
    whole = [column.rechunk() for column in columns]
    if len(whole[0]) == 1:
        whole = [column.append(column).rechunk() for column in whole]
    return pl.DataFrame(whole)


def evaluate(rows: pl.DataFrame, expression: pl.Expr, name: str = "") -> pl.Series:
    """The column that a row-by-row expression makes of the rows."""
    roots = dict.fromkeys(expression.meta.root_names()) or [TUPLE_TIME]
    wide = at_least_two(rows[root] for root in roots)
    column = wide.select(expression).to_series()
    if len(column) != wide.height:
        return column.new_from_index(0, rows.height).alias(name)
    return column.head(rows.height).alias(name)


def without_flags(rows: pl.DataFrame) -> pl.DataFrame:
    """The same rows in one chunk, without Polars' hidden sorted flags: a flag changes the bits of a float sum."""
    return pl.DataFrame([_without_flag(column) for column in rows.rechunk()])


def _without_flag(column: pl.Series) -> pl.Series:
    if column.dtype in (pl.Int128, pl.UInt128):  # Arrow has no such integers
        return column.cast(pl.String).cast(column.dtype)
    return pl.Series(column.name, column.to_arrow(), column.dtype)


def in_order(rows: pl.DataFrame, tie_break: TieBreak = ()) -> pl.DataFrame:
    """The rows by ``tuple_time``; at equal times by ``tie_break``, and then as they stand."""
    if rows.height < 2 or (not tie_break and is_sorted(times(rows))):
        return rows
    return rows.sort([pl.col(TUPLE_TIME), *tie_break], maintain_order=True)


def _same_bits(mine: pl.Series, theirs: pl.Series) -> bool:
    """Whether columns that are equal by value are so to the bit: 0.0 equals -0.0, and every NaN another."""
    if isinstance(mine.dtype, pl.Struct):
        return all(map(_same_bits, mine.struct.unnest(), theirs.struct.unnest()))
    if isinstance(mine.dtype, pl.List | pl.Array):
        return _same_bits(mine.explode(), theirs.explode())
    if not mine.dtype.is_float():
        return True
    left, right = (column.fill_null(0.0).to_numpy() for column in (mine, theirs))
    return left.tobytes() == right.tobytes()


class FrameKernel:
    """Rows are Polars frames."""

    def count(self, rows: pl.DataFrame) -> int:
        return rows.height

    def concat(self, parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
        return stack(parts)

    def earliest(self, rows: pl.DataFrame) -> int:
        return int(times(rows).min()) if rows.height else FINAL

    def latest(self, rows: pl.DataFrame) -> int:
        return int(times(rows).max()) if rows.height else START

    def same(self, mine: pl.DataFrame, theirs: pl.DataFrame) -> bool:
        if mine.height != theirs.height or not mine.equals(theirs):
            return False
        return not mine.height or all(_same_bits(mine[name], theirs[name]) for name in mine.columns)

    def head(self, rows: pl.DataFrame, n: int) -> pl.DataFrame:
        return rows.head(n)

    def skip(self, rows: pl.DataFrame, n: int) -> pl.DataFrame:
        return rows.slice(n)

    def split(self, rows: pl.DataFrame, time: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        if not rows.height:
            return rows, rows
        stamps = times(rows)
        if is_sorted(stamps):
            at = int(np.searchsorted(stamps, time))
            return rows.slice(0, at), rows.slice(at)
        early = pl.Series(stamps < time)
        return keep(rows, early), keep(rows, ~early)

    def buckets(self, rows: pl.DataFrame, width_us: int) -> Iterable[tuple[int, pl.DataFrame]]:
        if not rows.height:
            return
        stamps = times(rows)
        first = int(stamps.min()) // width_us
        if first == int(stamps.max()) // width_us:
            yield first, rows
            return
        index = stamps // width_us
        if not is_sorted(index):
            order = np.argsort(index, kind="stable")
            rows, index = take(rows, order), index[order]
        starts = np.flatnonzero(np.diff(index, prepend=index[0] - 1))
        ends = np.append(starts[1:], rows.height)
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            yield int(index[start]), rows.slice(start, end - start)

    def merge(self, parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
        return in_order(stack(parts))


class ListKernel:
    """Rows are lists of tuples ``(tuple_time, …)``."""

    def count(self, rows: list[Any]) -> int:
        return len(rows)

    def concat(self, parts: Sequence[list[Any]]) -> list[Any]:
        return [row for part in parts for row in part]

    def earliest(self, rows: list[Any]) -> int:
        return min((row[0] for row in rows), default=FINAL)

    def latest(self, rows: list[Any]) -> int:
        return max((row[0] for row in rows), default=START)

    def same(self, mine: list[Any], theirs: list[Any]) -> bool:
        return mine == theirs

    def head(self, rows: list[Any], n: int) -> list[Any]:
        return rows[:n]

    def skip(self, rows: list[Any], n: int) -> list[Any]:
        return rows[n:]

    def split(self, rows: list[Any], time: int) -> tuple[list[Any], list[Any]]:
        stamps = [row[0] for row in rows]
        if stamps == sorted(stamps):
            at = bisect_left(stamps, time)
            return rows[:at], rows[at:]
        return [row for row in rows if row[0] < time], [row for row in rows if row[0] >= time]

    def buckets(self, rows: list[Any], width_us: int) -> Iterable[tuple[int, list[Any]]]:
        by_bucket = sorted(rows, key=lambda row: row[0] // width_us)
        for index, part in groupby(by_bucket, key=lambda row: row[0] // width_us):
            yield index, list(part)

    def merge(self, parts: Sequence[list[Any]]) -> list[Any]:
        return sorted(self.concat(parts), key=lambda row: row[0])
