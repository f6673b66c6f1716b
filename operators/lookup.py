"""Rows found among known keys: a hash table made anew for each batch, in a few passes over arrays.

Most rows of a bucket belong to keys that an aggregate has already seen. Those are found here several times faster
than by grouping all rows again. Slots are taken by bits of Polars' hash; the key that a slot holds is compared
itself, so that neither a shared slot nor a shared hash gives a wrong answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenflow.operators.grouping import Groups, is_constant
from evenflow.operators.kernel import keep
from evenflow.operators.keys import canonical_floats, mix, short_words
from evenflow.operators.packing import Segments
from evenflow.operators.segments import count

_SLOTS_PER_KEY = 16
_ROUNDS_MAX = 8
_SMALL_ROWS = 1024
UNKNOWN = -1


@dataclass(frozen=True, slots=True, eq=False)
class _Keys:
    """Keys as columns, and a hash of each."""

    columns: Sequence[pl.Series]
    hashes: NDArray[np.uint64]

    def again(self, index: NDArray[np.int64]) -> _Keys:
        """The keys at these positions with another hash; those that shared the first one share it too."""
        at = pl.Series(index.astype(np.uint32))
        return _Keys([column[at] for column in self.columns], mix(self.hashes[index]))


def lookup(known: Sequence[pl.Series], rows: Sequence[pl.Series]) -> NDArray[np.int64]:
    """The position among the ``known`` keys, which differ from each other, of every row's; ``UNKNOWN`` if not found.

    >>> lookup([pl.Series(["a", "b"])], [pl.Series(["b", "c", "a"])]).tolist()
    [1, -1, 0]
    """
    words = (pair for both in zip(known, rows, strict=True) for pair in _in_words(*both))
    pairs = [pair for pair in words if not _all_alike(*pair)]
    if not pairs:
        return np.zeros(len(rows[0]), dtype=np.int64)
    hashed = _scrambled if len(pairs) == 1 and all(map(_is_whole_number, pairs[0])) else _hash
    mine, theirs = ([pair[side] for pair in pairs] for side in (0, 1))
    return _found(_Keys(mine, hashed(mine)), _Keys(theirs, hashed(theirs)))


def split_touched(segments: Segments, fresh: pl.DataFrame, keys: Sequence[str]) -> tuple[Segments, Segments]:
    """Rows whose key is among those of ``fresh``, and the others: a bucket's few keys need not fold all the rest."""
    if not keys or count(segments) <= _SMALL_ROWS:
        return segments, ()
    first = Groups.by([fresh[key] for key in keys], fresh.height).first()
    known = [_comparable(fresh[key][first]) for key in keys]
    hit, other = [], []
    for segment in segments:
        mask = pl.Series(lookup(known, [_comparable(segment[key]) for key in keys]) != UNKNOWN)
        hit.append(keep(segment, mask))
        other.append(keep(segment, ~mask))
    return tuple(filter(len, hit)), tuple(filter(len, other))


def _comparable(column: pl.Series) -> pl.Series:
    return canonical_floats(column) if column.dtype.is_float() else column


def _found(known: _Keys, rows: _Keys, rounds: int = _ROUNDS_MAX) -> NDArray[np.int64]:
    """The position of each row's key among the known ones, or ``UNKNOWN``.

    A slot keeps one key; those that lost theirs get another in the next round, until every key has had one.
    """
    if not rounds:
        return _found_by_grouping(known, rows)
    bits = (_SLOTS_PER_KEY * len(known.hashes)).bit_length()
    everyone = np.arange(len(known.hashes))
    table = np.zeros(1 << bits, dtype=np.uint32)
    slots = _slots(known.hashes, bits)
    table[slots] = everyone
    at = table.take(_slots(rows.hashes, bits))
    missed = _unlike(known, rows, at)
    found = at.astype(np.int64)
    found[missed] = UNKNOWN
    homeless = everyone[table[slots] != everyone]
    if len(missed) and len(homeless):
        later = _found(known.again(homeless), rows.again(missed), rounds - 1)
        found[missed] = np.where(later == UNKNOWN, UNKNOWN, homeless[later])
    return found


def _found_by_grouping(known: _Keys, rows: _Keys) -> NDArray[np.int64]:
    """The same without hashes, for what is left when too many keys share one."""
    size = len(known.hashes)
    both = [mine.clone().append(theirs).rechunk() for mine, theirs in zip(known.columns, rows.columns, strict=True)]
    codes = Groups.by(both, size + len(rows.hashes)).codes[size:]
    return np.where(codes < size, codes, UNKNOWN)


def _unlike(known: _Keys, rows: _Keys, at: NDArray[np.uint32]) -> NDArray[np.int64]:
    """The rows whose key is not the known one at the position given for each."""
    place = pl.Series(at)
    alike = [_equal(mine[place], theirs) for mine, theirs in zip(known.columns, rows.columns, strict=True)]
    return np.flatnonzero(~reduce(np.logical_and, alike))


def _equal(mine: pl.Series, theirs: pl.Series) -> NDArray[np.bool_]:
    """Where two columns hold the same, nulls included."""
    equal = mine.eq_missing(theirs) if mine.null_count() or theirs.null_count() else mine == theirs
    return equal.to_numpy()


def _in_words(known: pl.Series, rows: pl.Series) -> Sequence[tuple[pl.Series, pl.Series]]:
    """A column of short strings as columns of whole numbers; any other as it is."""
    if known.dtype in (pl.String, pl.Binary):
        mine = short_words(known)
        theirs = short_words(rows) if mine else []
        if theirs:
            return list(zip(mine, theirs, strict=True))
    return [(known, rows)]


def _all_alike(known: pl.Series, rows: pl.Series) -> bool:
    """Whether a column has the same value everywhere, as the pane mostly has: it tells no row from another."""
    return is_constant(known) and is_constant(rows) and bool(known[0] == rows[0])


def _is_whole_number(column: pl.Series) -> bool:
    return column.dtype == pl.Int64 and not column.null_count()


def _scrambled(columns: Sequence[pl.Series]) -> NDArray[np.uint64]:
    """An integer key times an odd number: as good as a hash for its upper bits, and faster."""
    return columns[0].to_numpy().view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def _hash(columns: Sequence[pl.Series]) -> NDArray[np.uint64]:
    total = columns[0].hash().to_numpy()
    for column in columns[1:]:
        total = mix(total) ^ column.hash().to_numpy()
    return total


def _slots(hashes: NDArray[np.uint64], bits: int) -> NDArray[np.int64]:
    return (hashes >> np.uint64(64 - bits)).view(np.int64)
