"""Sources: what a stream of input rows looks like, and which rows it takes.

Bad rows are refused once, here, before anything else sees them, so that a replay never disagrees with what was
processed live.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from evenflow.operators.errors import DeclarationError, InputError, nearest
from evenflow.operators.expressions import check_type
from evenflow.operators.items import HEADER, TUPLE_TIME
from evenflow.operators.kernel import keep
from evenflow.operators.operator import Schema
from evenflow.operators.times import START, TIME_MAX, readable

REASON = "reason"
ROW = "row"


@dataclass(frozen=True, slots=True)
class Source:
    """A named input: its attributes, and where its times come from.

    ``time`` None: rows are stamped with the source's clock (in a recorded input: the column ``tuple_time``).
    Otherwise the column that holds the time; rows may be late by at most ``slack_us``.
    """

    name: str
    schema: Mapping[str, pl.DataType]
    time: str | None = None
    slack_us: int = 0

    def admit(self, rows: pl.DataFrame, newest: int = START) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Rows as the engine takes them (``tuple_time``, then the attributes), and those refused with a reason.

        ``newest`` is the largest time of earlier rows. A missing column or a wrong type refuses the whole frame,
        by an error.
        """
        stamped = self._stamped(self._typed(rows))
        stamps = stamped[TUPLE_TIME]
        reasons = np.full(stamped.height, "", dtype=object)
        values = stamps.fill_null(START).to_numpy()
        possible = (values > -TIME_MAX) & (values < TIME_MAX)
        if self.time is not None and stamped.height:
            lead = np.maximum.accumulate(np.concatenate(([newest], np.where(possible, values, START))))[:-1]
            late = (lead > START) & (values < np.where(lead > START, lead, 0) - self.slack_us)
            reasons[late] = f"its time is more than {readable(self.slack_us)} behind an earlier row's"
        reasons[~possible] = f"its time is out of range: it must lie within ±{TIME_MAX} microseconds"
        reasons[stamps.is_null().to_numpy()] = "it has no time"
        good = pl.Series(reasons == "")
        if good.all():
            return stamped, self._rejected(stamped.clear(), [], [])
        at = np.flatnonzero(~good.to_numpy())
        return keep(stamped, good), self._rejected(keep(stamped, ~good), at.tolist(), reasons[at].tolist())

    def _rejected(self, rows: pl.DataFrame, at: list[int], reasons: list[str]) -> pl.DataFrame:
        row, reason = (name if name not in self.schema else f":{name}" for name in (ROW, REASON))
        head = [pl.Series(row, at, dtype=pl.Int64), pl.Series(reason, reasons, dtype=pl.String)]
        return pl.DataFrame([*head, *rows.get_columns()])

    def _stamped(self, rows: pl.DataFrame) -> pl.DataFrame:
        attributes = [rows[name] for name in self.schema]
        if self.time is None:
            return pl.DataFrame([rows[TUPLE_TIME], *attributes])
        stamps = rows[self.time]
        if stamps.dtype != pl.Int64:
            stamps = stamps.dt.cast_time_unit("us").to_physical()
        return pl.DataFrame([stamps.alias(TUPLE_TIME), *attributes])

    def _typed(self, rows: pl.DataFrame) -> pl.DataFrame:
        wanted: dict[str, pl.DataType] = dict(self.schema)
        if self.time is None:
            wanted = {TUPLE_TIME: pl.Int64(), **wanted}
        if TUPLE_TIME in wanted and isinstance(rows.schema.get(TUPLE_TIME), pl.Datetime):
            rows = rows.with_columns(pl.col(TUPLE_TIME).dt.cast_time_unit("us").to_physical())
        for name, dtype in wanted.items():
            if name not in rows.columns:
                raise InputError(
                    f"source {self.name!r}: the rows have no column {name!r}; {nearest(name, rows.columns)}"
                )
            if rows[name].dtype != dtype:
                rows = rows.with_columns(self._cast(rows[name], dtype))
        return rows

    def _cast(self, column: pl.Series, dtype: pl.DataType) -> pl.Series:
        """Widen where nothing can be lost; anything else is the sender's mistake."""
        if column.dtype == pl.Null or _widens(column.dtype, dtype):
            try:
                wide = column.cast(dtype)
            except pl.exceptions.PolarsError as error:
                reason = str(error).splitlines()[0]
                raise InputError(f"source {self.name!r}: column {column.name!r}: {reason}") from error
            if dtype.is_float() and column.dtype.is_integer() and not wide.cast(column.dtype).equals(column):
                raise InputError(
                    f"source {self.name!r}: column {column.name!r} holds integers that {dtype} cannot; declare it Int64"
                )
            return wide
        raise InputError(
            f"source {self.name!r}: column {column.name!r} holds {column.dtype}, but {dtype} is declared; "
            f"cast it before sending"
        )


def _widens(have: pl.DataType, want: pl.DataType) -> bool:
    if have.is_integer() and (want.is_integer() or want.is_float()):
        return True
    if have.is_float() and want.is_float():
        return have == pl.Float32
    if have in (pl.Categorical, pl.Enum) and want == pl.String:
        return True
    if isinstance(want, pl.Datetime):
        finer = {"ms": 0, "us": 1, "ns": 2}
        if isinstance(have, pl.Datetime):
            return have.time_zone == want.time_zone and finer[have.time_unit] <= finer[want.time_unit]
        return have == pl.Date
    return have == pl.String and isinstance(want, pl.Enum)


def declare_source(name: str, schema: Schema, time: str | None, slack_us: int) -> Source:
    """A source after its declaration has been checked."""
    if not name or not isinstance(name, str):
        raise DeclarationError("source: give it a name")
    if not schema:
        raise DeclarationError(f"source {name!r}: declare at least one column, such as {{'value': pl.Float64}}")
    types = {}
    for column, dtype in schema.items():
        if column in HEADER:
            raise DeclarationError(
                f"source {name!r}: {column!r} is a column of every row's header; call yours something else"
            )
        if column.startswith(":"):
            raise DeclarationError(f"source {name!r}: column names do not begin with ':', as {column!r} does")
        types[column] = _dtype(name, column, dtype)
    if time is not None:
        if time not in types:
            raise DeclarationError(f"source {name!r}: time={time!r} is not a column; {nearest(time, types)}")
        if types[time] != pl.Int64 and not isinstance(types[time], pl.Datetime):
            raise DeclarationError(
                f"source {name!r}: the time column {time!r} is {types[time]}; "
                f"it must be Int64 (microseconds) or Datetime"
            )
    elif slack_us:
        raise DeclarationError(f"source {name!r}: slack= goes with time=, the column that holds the time")
    return Source(name, types, time, slack_us)


def _dtype(source: str, column: str, dtype: Any) -> pl.DataType:
    if dtype in (pl.Datetime, pl.Duration) and isinstance(dtype, type):
        return pl.Datetime("us") if dtype == pl.Datetime else pl.Duration("us")
    if isinstance(dtype, type) and dtype in (pl.Decimal, pl.Enum, pl.List, pl.Array, pl.Struct):
        raise DeclarationError(
            f"source {source!r}: column {column!r}: write {dtype.__name__} with its parameters, as in pl.Decimal(10, 2)"
        )
    try:
        known = pl.Schema({column: dtype})[column]
        check_type(f"source {source!r}: column {column!r}", known)
        return known
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise DeclarationError(f"source {source!r}: {dtype!r} of column {column!r} is not a Polars type") from error
