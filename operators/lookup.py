"""Rows found among known keys: a hash table made anew for each batch, in a few passes over arrays.

Most rows of a bucket belong to keys that an aggregate has already seen. Those are found here several times faster
than by grouping all rows again. Slots are taken by bits of Polars' hash; what a slot holds is compared
key by key, so that neither a shared slot nor a shared hash gives a wrong answer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenflow.operators.grouping import Groups, is_constant
from evenflow.operators.kernel import keep
from evenflow.operators.keys import canonical_floats, mix
from evenflow.operators.packing import Segments
from evenflow.operators.segments import count

_SLOTS_PER_KEY = 16
_ROUNDS_MAX = 8
_SMALL_ROWS = 1024
UNKNOWN = -1
NOBODY: NDArray[np.int64] = np.empty(0, dtype=np.int64)


def lookup(known: Sequence[pl.Series], rows: Sequence[pl.Series]) -> NDArray[np.int64]:
    """The position among the ``known`` keys, which differ from each other, of every row's; ``UNKNOWN`` if not found.

    >>> lookup([pl.Series(["a", "b"])], [pl.Series(["b", "c", "a"])]).tolist()
    [1, -1, 0]
    """
    pairs = [(mine, theirs) for mine, theirs in zip(known, rows, strict=True) if not _all_alike(mine, theirs)]
    if not pairs:
        return np.zeros(len(rows[0]), dtype=np.int64)
    exact = len(pairs) == 1 and all(map(_is_whole_number, pairs[0]))
    hashes = _scrambled if exact else _hash
    bits = (_SLOTS_PER_KEY * len(known[0])).bit_length()
    mine, theirs = hashes([pair[0] for pair in pairs]), hashes([pair[1] for pair in pairs])
    found = _found(mine, theirs, bits)
    return found if exact else _checked(pairs, found)


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


def _found(known: NDArray[np.uint64], wanted: NDArray[np.uint64], bits: int) -> NDArray[np.int64]:
    """The position of each wanted hash among the known ones, or ``UNKNOWN``.

    A slot keeps one key; those that lost theirs get another in the next round, until every key has had one.
    """
    everyone = np.arange(len(known))
    found, homeless = _round(known, everyone, wanted, 64 - bits, bits)
    for turn in range(1, _ROUNDS_MAX):
        left = np.flatnonzero(found == UNKNOWN)
        if not (len(homeless) and len(left)):
            return found
        found[left], homeless = _round(known, homeless, wanted[left], max(0, 64 - bits - 7 * turn), bits)
    left = np.flatnonzero(found == UNKNOWN)
    for key in homeless.tolist():
        found[left[wanted[left] == known[key]]] = key
    return found


def _round(
    known: NDArray[np.uint64], homeless: NDArray[np.int64], wanted: NDArray[np.uint64], shift: int, bits: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Whom each wanted hash finds in its slot, and the keys that did not get theirs."""
    table = np.zeros(1 << bits, dtype=np.int64)
    slots = _slots(known[homeless], shift, bits)
    table[slots] = homeless
    at = table[_slots(wanted, shift, bits)]
    at[known[at] != wanted] = UNKNOWN
    return at, homeless[table[slots] != homeless]


def _all_alike(known: pl.Series, rows: pl.Series) -> bool:
    """Whether a column has the same value everywhere, as the pane mostly has: it tells no row from another."""
    return is_constant(known) and is_constant(rows) and bool(known[0] == rows[0])


def _is_whole_number(column: pl.Series) -> bool:
    return column.dtype == pl.Int64 and not column.null_count()


def _scrambled(columns: Sequence[pl.Series]) -> NDArray[np.uint64]:
    """An integer key times an odd number: different keys never become equal, so nothing need be compared again."""
    return columns[0].to_numpy().view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def _hash(columns: Sequence[pl.Series]) -> NDArray[np.uint64]:
    total = columns[0].hash().to_numpy()
    for column in columns[1:]:
        total = mix(total) ^ column.hash().to_numpy()
    return total


def _checked(pairs: Sequence[tuple[pl.Series, pl.Series]], found: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same for keys as for their hashes: where two keys share a hash, it is found out which one it is."""
    at = pl.Series(np.maximum(found, 0).astype(np.uint32))
    unlike = np.zeros(len(found), dtype=bool)
    for known, rows in pairs:
        held = known[at]
        equal = rows.eq_missing(held) if known.null_count() or rows.null_count() else rows == held
        if not equal.all():
            unlike |= ~equal.to_numpy()
    doubtful = np.flatnonzero(unlike & (found != UNKNOWN)) if unlike.any() else NOBODY
    if len(doubtful):
        size = len(pairs[0][0])
        both = [known.clone().append(rows[doubtful]).rechunk() for known, rows in pairs]
        codes = Groups.by(both, size + len(doubtful)).codes[size:]
        found[doubtful] = np.where(codes < size, codes, UNKNOWN)
    return found


def _slots(hashes: NDArray[np.uint64], shift: int, bits: int) -> NDArray[np.int64]:
    slots = hashes >> np.uint64(shift)
    if shift + bits < 64:
        slots &= np.uint64((1 << bits) - 1)
    return slots.view(np.int64)
