"""What travels on a stream (Borealis §3.1): rows with their boundary, undo and end-of-reconciliation marks.

A stream has two lanes. On the *stable* lane an item is known by its ids: a row's ``tuple_id`` is its position in
the stream, from 1, the same on every replica. On the *tentative* lane an item is known by its time only. Rows
travel with their boundary as one item: a deadline that fell between the two would show a row twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

import polars as pl

R = TypeVar("R")

TUPLE_ID = "tuple_id"
TUPLE_TIME = "tuple_time"
TUPLE_TYPE = "tuple_type"
HEADER = (TUPLE_ID, TUPLE_TIME, TUPLE_TYPE)


class TupleType(StrEnum):
    """The paper's tuple types. ``INSERTION`` is a stable row."""

    INSERTION = "INSERTION"
    TENTATIVE = "TENTATIVE"
    BOUNDARY = "BOUNDARY"
    UNDO = "UNDO"
    REC_DONE = "REC_DONE"


TUPLE_TYPE_DTYPE = pl.Enum([kind.value for kind in TupleType])


@dataclass(frozen=True, slots=True)
class Boundary:
    """How far a stream has come.

    Stable: a promise that no later stable row has a ``tuple_time`` below ``time``; ``last_id`` is the stable id
    reached, so that the next item's ids must follow it and a lost item shows. Tentative: time has moved on
    without such a promise.

    ``seen``: how far time itself is known to have passed. The boundary behind a window is the next window's end, which
    may lie ahead of it; a consumer's deadlines must not start before. None: as far as ``time``.
    """

    time: int
    stable: bool = True
    last_id: int = 0
    seen: int | None = None

    @property
    def evidence(self) -> int:
        """How far time has passed for certain."""
        return self.time if self.seen is None else min(self.seen, self.time)


@dataclass(frozen=True, slots=True, eq=False)
class Data(Generic[R]):
    """A batch of rows and the boundary behind them; all rows are stable or all are tentative.

    ``first_id`` numbers the first row. ``missing`` names the inputs that tentative rows lack.
    """

    rows: R
    first_id: int
    boundary: Boundary
    missing: frozenset[str] = frozenset()

    @property
    def stable(self) -> bool:
        return self.boundary.stable


@dataclass(frozen=True, slots=True)
class Undo:
    """Forget every row after ``last_id``."""

    last_id: int


@dataclass(frozen=True, slots=True)
class RecDone:
    """The corrections that began with the last :class:`Undo` are complete, up to time ``upto``."""

    upto: int


Item = Data[R] | Boundary | Undo | RecDone


def with_header(rows: pl.DataFrame, first_id: int, tuple_type: TupleType) -> pl.DataFrame:
    """Rows as a user sees them: ``tuple_id``, ``tuple_time``, ``tuple_type``, then the attributes."""
    ids = pl.int_range(first_id, first_id + rows.height, dtype=pl.Int64, eager=True).alias(TUPLE_ID)
    kind = pl.repeat(tuple_type.value, rows.height, dtype=TUPLE_TYPE_DTYPE, eager=True).alias(TUPLE_TYPE)
    attributes = [column for column in rows.get_columns() if column.name != TUPLE_TIME]
    return pl.DataFrame([ids, rows[TUPLE_TIME], kind, *attributes])
