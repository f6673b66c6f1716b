"""Stream: an immutable handle on one stream of a network; every method gives a new one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from evenflow.operators.distinct import Distinct
from evenflow.operators.errors import DeclarationError, nearest
from evenflow.operators.filter import Filter
from evenflow.operators.functions import BatchFunction, MapBatches, MapRows, RowFunction
from evenflow.operators.items import TUPLE_TIME
from evenflow.operators.join import Join
from evenflow.operators.operator import Operator, Schema
from evenflow.operators.select import Select
from evenflow.operators.top import Top
from evenflow.operators.with_columns import WithColumns
from evenflow.queries.columns import Columns, as_list, checked_columns, named_expressions, ranking
from evenflow.queries.durations import Duration, microseconds
from evenflow.queries.windowed import Running, Windowed, sessions, windows

if TYPE_CHECKING:
    from evenflow.queries.network import Network

IntoExpr = str | pl.Expr


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """A stream of rows. Expressions are Polars', over the attributes and ``tuple_time``."""

    network: Network
    number: int

    def __repr__(self) -> str:
        columns = ", ".join(f"{name}: {dtype}" for name, dtype in self.schema.items())
        return f"Stream({self.name!r}: {columns})"

    @property
    def name(self) -> str:
        return self.network.nodes[self.number].name

    @property
    def schema(self) -> Mapping[str, pl.DataType]:
        """The attributes and their types, without the header."""
        return self.network.nodes[self.number].schema

    def filter(self, predicate: pl.Expr) -> Stream:
        """The rows for which the predicate is true."""
        if not isinstance(predicate, pl.Expr):
            raise DeclarationError(f"filter: {predicate!r} is not an expression; write one like pl.col('x') > 0")
        return self._then(Filter(predicate))

    def with_columns(self, *expressions: IntoExpr, **named: IntoExpr | Any) -> Stream:
        """Add columns, or replace them, row by row."""
        return self._then(WithColumns(named_expressions("with_columns", expressions, named)))

    def select(self, *expressions: IntoExpr, **named: IntoExpr | Any) -> Stream:
        """Only these columns go on."""
        return self._then(Select(named_expressions("select", expressions, named)))

    def map_batches(self, function: BatchFunction, schema: Schema | None = None) -> Stream:
        """Your function over frames of the attributes: it gives one row for each, depending on that row alone."""
        _check_callable("map_batches", function)
        return self._then(MapBatches(function, schema))

    def map_rows(self, function: RowFunction, schema: Schema | None = None) -> Stream:
        """Your function over single rows: a dict of the attributes in, one out."""
        _check_callable("map_rows", function)
        return self._then(MapRows(function, schema))

    def apply(self, operator: Operator[Any]) -> Stream:
        """Your own operator: a subclass of ``evenflow.Operator``."""
        if not isinstance(operator, Operator):
            raise DeclarationError(f"apply: {operator!r} is not an operator; subclass evenflow.Operator")
        return self._then(operator)

    def window(
        self,
        size: Duration | None = None,
        *,
        every: Duration | None = None,
        rows: int | None = None,
        until: str | None = None,
        by: Columns = (),
    ) -> Windowed:
        """Windows to aggregate over, by key: of a ``size`` of time (one ``every`` so often, aligned to zero), of a
        number of ``rows``, or ``until`` the time in a column."""
        return windows(self, size, every, rows, until, by)

    def session(self, gap: Duration, *, by: Columns = ()) -> Windowed:
        """Windows of rows that follow each other by less than ``gap``, by key."""
        return sessions(self, gap, by)

    def running(self, *, by: Columns = (), rows: int | None = None) -> Running:
        """An aggregate that never closes: a row for every row, over all of its key so far or the last ``rows``."""
        return Running(self, checked_columns("running", self.schema, by, "by"), rows)

    def join(
        self,
        other: Stream,
        *,
        on: Columns = (),
        left_on: Columns = (),
        right_on: Columns = (),
        within: Duration | None,
        how: Literal["inner", "left"] = "inner",
        where: pl.Expr | None = None,
    ) -> Stream:
        """Pairs with equal keys whose times differ by at most ``within`` (None: any time, kept for ever)."""
        if not isinstance(other, Stream):
            raise DeclarationError(f"join: {other!r} is not a stream")
        on, left_on, right_on = (as_list(columns) for columns in (on, left_on, right_on))
        if bool(on) == bool(left_on or right_on):
            raise DeclarationError("join: name the keys by on=, or by left_on= and right_on=")
        left = checked_columns("join", self.schema, on or left_on, "on" if on else "left_on")
        right = checked_columns("join", other.schema, on or right_on, "on" if on else "right_on")
        if len(left) != len(right):
            raise DeclarationError(f"join: {len(left)} keys on the left and {len(right)} on the right")
        if how not in ("inner", "left"):
            raise DeclarationError(f"join: how={how!r} is not known; there is 'inner' and 'left'")
        if within is None and how == "left":
            raise DeclarationError("join: a left join needs within=: without it no row is ever known to be unmatched")
        within_us = None if within is None else microseconds(within, "join: within", zero=True)
        return self.network.add(Join(left, right, within_us, how == "left", where), [self, other])

    def distinct(self, on: Columns, *, within: Duration | None = None) -> Stream:
        """Rows whose ``on`` values did not come at most ``within`` before."""
        if within is None:
            raise DeclarationError("distinct: say within=, or every value would have to be remembered for ever")
        keys = checked_columns("distinct", self.schema, on, "on")
        if not keys:
            raise DeclarationError("distinct: name at least one column")
        return self._then(Distinct(keys, microseconds(within, "distinct: within")))

    def top(self, k: int, *, by: str, per: Columns = (), ties: bool = False, ascending: bool = False) -> Stream:
        """The ``k`` best rows of each window (rows of one ``tuple_time``), or of each ``per`` value within it.

        With ``ties`` all rows that equal the last one are kept; without, the earlier ones win.
        """
        return self._then(Top(ranking("top", self.schema, k, by, per, ties, ascending)))

    def named(self, name: str) -> Stream:
        """The same stream with a name of your own, for ``explain`` and for placing it on a node."""
        self.network.rename(self, name)
        return self

    def output(self, name: str) -> Stream:
        """Let clients subscribe to this stream."""
        self.network.add_output(name, self)
        return self

    def _then(self, operator: Operator[Any]) -> Stream:
        return self.network.add(operator, [self])

    def column_type(self, operator: str, name: str) -> pl.DataType:
        """The type of a column; an error that names the operator if there is none."""
        if name == TUPLE_TIME:
            return pl.Int64()
        if name not in self.schema:
            raise DeclarationError(f"{operator}: there is no column {name!r}; {nearest(name, self.schema)}")
        return self.schema[name]


def _check_callable(operator: str, function: object) -> None:
    if not callable(function):
        raise DeclarationError(f"{operator}: {function!r} is not a function")
