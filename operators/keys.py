"""A hash of keys that is ours and stays: the same on every machine, version and day.

Partitions of a stream, slices of a packed state and the tasks of a batch job are ranges of it. Neither Python's
nor Polars' hash is promised to stay the same. It is also the join's index, so it is made without touching a row
one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

_NULL = np.uint64(0x9AE16A3B2F90404F)
_MULTIPLIER = 0x9E3779B97F4A7C15
_SPACE = 2**64
_INLINE_BYTES = 12
"""Arrow's view of a string holds this many bytes itself, zeros behind a shorter one; a longer one lies elsewhere."""


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Keys whose hash lies in ``[low, high)`` of the 64-bit space."""

    low: int
    high: int

    @classmethod
    def partition(cls, number: int, of: int) -> KeyRange:
        """Part ``number`` (from 0) of the space cut into ``of`` equal parts.

        >>> KeyRange.partition(0, 2).high == KeyRange.partition(1, 2).low
        True
        """
        return cls(_SPACE * number // of, _SPACE * (number + 1) // of)

    def select(self, hashes: Hashes) -> NDArray[np.bool_]:
        inside = hashes >= np.uint64(self.low)
        return inside if self.high == _SPACE else inside & (hashes < np.uint64(self.high))


def mix(values: Hashes) -> Hashes:
    """A bijection of 64-bit words that spreads every bit (the finaliser of SplitMix64)."""
    z = values + np.uint64(_MULTIPLIER)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def key_hash(rows: pl.DataFrame, columns: Sequence[str]) -> Hashes:
    """The hash of these columns, row by row. With no column every row has hash 0: one key, never split.

    Equal keys hash alike whatever their type's width, ``0.0`` like ``-0.0``, every NaN like every other.
    """
    total = np.zeros(rows.height, dtype=np.uint64)
    for name in columns:
        total = mix(total ^ _column_hash(rows[name]))
    return total


def _column_hash(column: pl.Series) -> Hashes:
    if column.dtype in (pl.String, pl.Binary, pl.Categorical, pl.Enum):
        hashes = _bytes_hash(column)
    else:
        hashes = mix(_words(column))
    if column.null_count():
        hashes = np.where(column.is_null().to_numpy(), _NULL, hashes)
    return hashes


def _words(column: pl.Series) -> Hashes:
    if column.dtype.is_float():
        return _filled(canonical_floats(column), 0.0).view(np.uint64)
    if column.dtype.is_decimal() or column.dtype in (pl.Int128, pl.UInt128):
        return _bytes_hash(column.cast(pl.String))
    values = _filled(column.to_physical(), False if column.dtype == pl.Boolean else 0)
    return values.astype(np.int64, copy=False).view(np.uint64)


def _filled(column: pl.Series, value: float) -> NDArray[Any]:
    """The values with nulls replaced. (Asking Polars to do so goes through its planner even where there is none.)"""
    return column.fill_null(value).to_numpy() if column.null_count() else column.to_numpy()


def canonical_floats(column: pl.Series) -> pl.Series:
    """Float64 with one zero and one NaN, so that equal values have equal bits.

    (Polars adds 0.0 to a Series by handing it back, so that -0.0 stays; NumPy adds it.)
    """
    values = column.cast(pl.Float64)
    numbers = values.to_numpy()
    nan = np.isnan(numbers)
    if not (nan.any() or (numbers == 0.0).any()):
        return values
    fixed = pl.Series(column.name, np.where(nan, np.nan, numbers + 0.0))
    if not values.null_count():
        return fixed
    return pl.select(pl.when(values.is_not_null()).then(fixed).alias(column.name)).to_series()


def short_words(column: pl.Series) -> list[pl.Series]:
    """Strings as whole numbers, two for each, that are equal where the strings are; none if one is long or null.

    They are the words of Arrow's views: the length with the first four bytes, and the other eight. Comparing and
    hashing numbers is several times faster than strings, and the first word is often the same in all rows.

    >>> [word.n_unique() for word in short_words(pl.Series(["host-1", "host-2", "host-1"]))]
    [1, 2]
    >>> short_words(pl.Series(["longer than a view"]))
    []
    """
    if column.null_count() or not len(column):
        return []
    arrow = column.rechunk().to_arrow(compat_level=pl.CompatLevel.newest())
    views = np.frombuffer(arrow.buffers()[1], dtype=np.int64)[2 * arrow.offset :][: 2 * len(arrow)]
    head, rest = views[::2].copy(), views[1::2].copy()
    if head.view(np.uint32)[::2].max() > _INLINE_BYTES:
        return []
    return [pl.Series(head), pl.Series(rest)]


def _bytes_hash(column: pl.Series) -> Hashes:
    """A polynomial over each value's bytes: Σ byte · m^position, mixed with the length."""
    data = column.cast(pl.String).cast(pl.Binary) if column.dtype != pl.Binary else column
    arrow = data.fill_null(b"").rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    _, offset_buffer, value_buffer = arrow.buffers()
    offsets = np.frombuffer(offset_buffer, dtype=np.int64, count=len(arrow) + 1 + arrow.offset)[arrow.offset :]
    lengths = np.diff(offsets)
    hashes = np.zeros(len(arrow), dtype=np.uint64)
    if len(arrow) and offsets[-1] > offsets[0]:
        content = np.frombuffer(value_buffer, dtype=np.uint8)[offsets[0] : offsets[-1]].astype(np.uint64)
        filled = np.flatnonzero(lengths)
        starts = offsets[:-1][filled] - offsets[0]
        position = np.arange(len(content)) - np.repeat(starts, lengths[filled])
        powers = np.cumprod(np.full(int(lengths.max()), _MULTIPLIER, dtype=np.uint64))
        hashes[filled] = np.add.reduceat((content + np.uint64(1)) * powers[position], starts)
    return mix(hashes ^ mix(lengths.astype(np.uint64)))
