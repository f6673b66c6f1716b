"""Windows waiting for their aggregates: what ``window(...)``, ``session(...)`` and ``running(...)`` give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from evenflow.operators.aggregates import Aggregate
from evenflow.operators.count_window import CountAggregate
from evenflow.operators.errors import DeclarationError
from evenflow.operators.expressions import aggregate_types, check_aggregate, result_types
from evenflow.operators.items import HEADER
from evenflow.operators.operator import Operator, Schema
from evenflow.operators.panes import TimeWindows
from evenflow.operators.running import RunningAggregate, RunningRowsAggregate
from evenflow.operators.session import SessionAggregate
from evenflow.operators.sums import Aggregation
from evenflow.operators.window import WINDOW_END, WINDOW_START, UntilAggregate, WindowAggregate
from evenflow.operators.window_top import UntilTop, WindowTop
from evenflow.queries.columns import Columns, checked_columns, ranking
from evenflow.queries.durations import Duration, microseconds

if TYPE_CHECKING:
    from evenflow.operators.top import Ranking
    from evenflow.queries.stream import Stream

Built = Operator[Any]
WINDOW_COLUMNS = {WINDOW_START: pl.Int64(), WINDOW_END: pl.Int64()}


@dataclass(frozen=True, slots=True, eq=False)
class Windowed:
    """A stream cut into windows; ``agg`` says what becomes of each."""

    stream: Stream
    kind: str
    keys: tuple[str, ...]
    aggregate: Callable[[Aggregation, Schema], Built]
    ranked: Callable[[Ranking, Schema], Built] | None = None
    extra: tuple[str, ...] = ()

    def agg(self, *unnamed: object, **aggregates: Aggregate | pl.Expr) -> Stream:
        """A row for each window and key: ``window_start``, ``window_end``, the keys, then these."""
        _check_named(self.kind, unnamed)
        made, types = _aggregation(self.kind, self.stream.schema, self.keys, aggregates, self.extra)
        taken = next((name for name in aggregates if name in WINDOW_COLUMNS or name in self.keys), None)
        if taken is not None:
            raise DeclarationError(f"{self.kind}: {taken!r} is a column of every window; call the aggregate otherwise")
        clash = next((key for key in self.keys if key in WINDOW_COLUMNS), None)
        if clash is not None:
            raise DeclarationError(f"{self.kind}: by={clash!r} clashes with the window's own column; rename it first")
        keys = {key: self.stream.schema[key] for key in self.keys}
        return self.stream.network.add(self.aggregate(made, {**WINDOW_COLUMNS, **keys, **types}), [self.stream])

    def top(self, k: int, *, by: str, per: Columns = (), ties: bool = False, ascending: bool = False) -> Stream:
        """The ``k`` best rows of each window themselves, or of each ``per`` value in it."""
        if self.ranked is None:
            raise DeclarationError(f"{self.kind}: top() goes with windows that time closes: window(size) or until=")
        chosen = ranking(f"{self.kind}.top", self.stream.schema, k, by, per or self.keys, ties, ascending)
        clash = next((name for name in self.stream.schema if name in WINDOW_COLUMNS), None)
        if clash is not None:
            raise DeclarationError(f"{self.kind}.top: the column {clash!r} clashes with the window's own; rename it")
        operator = self.ranked(chosen, {**WINDOW_COLUMNS, **self.stream.schema})
        return self.stream.network.add(operator, [self.stream])


@dataclass(frozen=True, slots=True, eq=False)
class Running:
    """An aggregate that never closes, waiting to be named."""

    stream: Stream
    keys: tuple[str, ...]
    rows: int | None

    def agg(self, *unnamed: object, **aggregates: Aggregate | pl.Expr) -> Stream:
        """A row for every row: its keys, then these."""
        _check_named("running", unnamed)
        made, types = _aggregation("running", self.stream.schema, self.keys, aggregates, ())
        if made.closing:
            name, expression = next(iter(made.closing.items()))
            raise DeclarationError(
                f"running: {name} = {expression} would be evaluated when its window closes, and this one never does; "
                f"use count, sum, mean, min, max, std, first or last of evenflow"
            )
        unable = next((name for name, a in made.incremental.items() if type(a).scan is Aggregate.scan), None)
        if unable is not None and self.rows is None:
            raise DeclarationError(
                f"running: {unable} = {made.incremental[unable]!r} has no scan(), the fold so far at each row; "
                f"write one, or say rows="
            )
        taken = next((name for name in aggregates if name in self.keys), None)
        if taken is not None:
            raise DeclarationError(f"running: {taken!r} is a key already; call the aggregate otherwise")
        output = {**{key: self.stream.schema[key] for key in self.keys}, **types}
        if self.rows is None:
            return self.stream.network.add(RunningAggregate(made, output), [self.stream])
        return self.stream.network.add(
            RunningRowsAggregate(_positive("running", self.rows), made, output), [self.stream]
        )


def windows(
    stream: Stream, size: Duration | None, every: Duration | None, rows: int | None, until: str | None, by: Columns
) -> Windowed:
    keys = checked_columns("window", stream.schema, by, "by")
    if sum(given is not None for given in (size, rows, until)) != 1:
        raise DeclarationError("window: say one of a size of time, rows= or until=")
    if every is not None and size is None:
        raise DeclarationError("window: every= goes with a size of time")
    if rows is not None:
        n = _positive("window", rows)
        return Windowed(stream, "window", keys, lambda made, output: CountAggregate(n, made, output))
    if until is not None:
        column = until
        (dtype,) = (stream.column_type("window until", column),)
        if dtype != pl.Int64:
            raise DeclarationError(f"window: until={column!r} is {dtype}; it must be Int64, a time in microseconds")
        return Windowed(
            stream,
            "window",
            keys,
            lambda made, output: UntilAggregate(column, made, output),
            lambda chosen, output: UntilTop(column, chosen, output),
            extra=(column,),
        )
    size_us = microseconds(size if size is not None else 0, "window: size")
    time = TimeWindows(size_us, size_us if every is None else microseconds(every, "window: every"))
    return Windowed(
        stream,
        "window",
        keys,
        lambda made, output: WindowAggregate(time, made, output),
        lambda chosen, output: WindowTop(time, chosen, output),
    )


def sessions(stream: Stream, gap: Duration, by: Columns) -> Windowed:
    keys = checked_columns("session", stream.schema, by, "by")
    gap_us = microseconds(gap, "session: gap")
    return Windowed(stream, "session", keys, lambda made, output: SessionAggregate(gap_us, made, output))


def _check_named(operator: str, unnamed: Sequence[object]) -> None:
    if unnamed:
        raise DeclarationError(f"{operator}: name each aggregate: agg(total={unnamed[0]}), not agg({unnamed[0]})")


def _positive(operator: str, rows: int) -> int:
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
        raise DeclarationError(f"{operator}: rows={rows!r} must be a whole number from 1 on")
    return rows


def _aggregation(
    operator: str,
    schema: Schema,
    keys: tuple[str, ...],
    aggregates: Mapping[str, Aggregate | pl.Expr],
    extra: tuple[str, ...],
) -> tuple[Aggregation, dict[str, pl.DataType]]:
    """The aggregates by how they are computed, and their types."""
    if not aggregates:
        raise DeclarationError(f"{operator}: agg() needs at least one aggregate, such as n=ef.count()")
    incremental: dict[str, Aggregate] = {}
    closing: dict[str, pl.Expr] = {}
    types: dict[str, pl.DataType] = {}
    for name, aggregate in aggregates.items():
        where = f"{operator}: {name}"
        if name in HEADER:
            raise DeclarationError(f"{where} belongs to the row's header; call the aggregate otherwise")
        if isinstance(aggregate, Aggregate):
            value = result_types(where, schema, {name: aggregate.value})[name]
            types[name] = aggregate.dtype(value)
            incremental[name] = aggregate
        elif isinstance(aggregate, pl.Expr):
            check_aggregate(where, aggregate)
            types[name] = aggregate_types(where, schema, {name: aggregate})[name]
            closing[name] = aggregate
        else:
            raise DeclarationError(f"{where} = {aggregate!r} is no aggregate; use ef.sum(...) or a Polars expression")
    return Aggregation(keys, incremental, closing, tuple(aggregates), extra), types
