"""Rows by key, as integer codes in order of first appearance: the ground under every deterministic aggregate.

Polars' own float sums in ``group_by`` vary with threads, chunks and hidden flags (see docs/decisions). Here a key
column becomes dense codes (Arrow's dictionary encoding, one pass) and each aggregate is a scatter over them in
stream order: a left fold per group, whose bits depend on nothing but the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from evenflow.operators.keys import canonical_floats, short_words

Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Row ``i`` belongs to group ``codes[i]``; groups are numbered by first appearance."""

    codes: Codes
    n: int

    @classmethod
    def by(cls, columns: Sequence[pl.Series], height: int) -> Groups:
        """Group by the columns together; with none, all rows are one group."""
        varying = [column for column in columns if not is_constant(column)]
        if not varying:
            return cls(np.zeros(height, dtype=np.int64), min(height, 1))
        codes = _encode(varying[0])
        for column in varying[1:]:
            other = _encode(column)
            width = int(other.max(initial=0)) + 1
            codes = _dense(codes * width + other)
        return cls(codes, int(codes.max(initial=-1)) + 1)

    def first(self) -> Codes:
        """The position of each group's first row."""
        at = np.empty(self.n, dtype=np.int64)
        at[self.codes[::-1]] = np.arange(len(self.codes) - 1, -1, -1)
        return at

    def last(self) -> Codes:
        """The position of each group's last row."""
        at = np.empty(self.n, dtype=np.int64)
        at[self.codes] = np.arange(len(self.codes))
        return at

    def count(self, mask: NDArray[np.bool_] | None = None) -> Codes:
        codes = self.codes if mask is None else self.codes[mask]
        return np.bincount(codes, minlength=self.n)

    def sum(self, values: NDArray[Any]) -> NDArray[Any]:
        """Each group's sum, added one by one in row order."""
        if values.dtype.kind == "f":
            return np.bincount(self.codes, weights=values, minlength=self.n)
        total = np.zeros(self.n, dtype=values.dtype)
        with np.errstate(over="ignore"):
            np.add.at(total, self.codes, values)
        return total

    def extreme(self, values: NDArray[Any], mask: NDArray[np.bool_] | None, largest: bool) -> NDArray[Any]:
        """Each group's largest or smallest of the values under ``mask``; the type's own end where there is none."""
        codes = self.codes if mask is None else self.codes[mask]
        values = values if mask is None else values[mask]
        ends: tuple[Any, Any] = (-np.inf, np.inf)
        if values.dtype.kind != "f":
            info = np.iinfo(values.dtype)
            ends = (info.min, info.max)
        best = np.full(self.n, ends[0] if largest else ends[1], dtype=values.dtype)
        (np.maximum if largest else np.minimum).at(best, codes, values)
        return best

    def ranks(self) -> Codes:
        """Each row's place within its group, from 0."""
        order = np.argsort(self.codes, kind="stable")
        grouped = self.codes[order]
        starts = np.flatnonzero(np.diff(grouped, prepend=-1))
        sizes = np.diff(np.append(starts, len(grouped)))
        place = np.empty(len(grouped), dtype=np.int64)
        place[order] = np.arange(len(grouped)) - np.repeat(starts, sizes)
        return place


def is_constant(column: pl.Series) -> bool:
    """Whether all rows are known to be alike, as the panes of one bucket mostly are: such a column groups nothing."""
    if not column.dtype.is_integer() or column.null_count() or not len(column):
        return False
    values = column.to_numpy()
    return bool(values[0] == values[-1] and (values == values[0]).all())


def _encode(column: pl.Series) -> Codes:
    if column.dtype.is_float():
        column = canonical_floats(column)
    elif column.dtype in (pl.String, pl.Binary):
        return _encode_bytes(column)
    elif column.dtype != pl.Boolean:
        column = column.to_physical()
        if column.dtype in (pl.Int128, pl.UInt128):
            return _encode_bytes(column.cast(pl.String))
    return _dictionary(column)


def _encode_bytes(column: pl.Series) -> Codes:
    """Short strings that differ only in one word by it, others by their hash if no two share one: that is looked at."""
    match [word for word in short_words(column) if not is_constant(word)]:
        case [word]:
            return _dictionary(word)
    codes = _dictionary(column.hash())
    first = Groups(codes, int(codes.max(initial=-1)) + 1).first()
    if column.eq_missing(column[first[codes]]).all():
        return codes
    return _dictionary(column)


def _dictionary(column: pl.Series) -> Codes:
    encoded = pc.dictionary_encode(column.rechunk().to_arrow(), null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    codes: Codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _dense(codes: Codes) -> Codes:
    return _dictionary(pl.Series(codes))
