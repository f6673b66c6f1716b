"""Rows found among known keys: a hash table made anew for each batch, in a few passes over arrays.

Most rows of a bucket belong to keys that an aggregate has already seen. Those are found here several times faster
than by grouping all rows again. Slots are taken by bits of Polars' hash; what a slot holds is compared
key by key, so that neither a shared slot nor a shared hash can be wrong, only not found.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenflow.operators.grouping import is_constant
from evenflow.operators.keys import mix

_SLOTS_PER_KEY = 16
_ROUNDS = 3
UNKNOWN = -1


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
    found = _in_slots(mine, theirs, 64 - bits, bits)
    for turn in range(1, _ROUNDS):
        left = np.flatnonzero(found == UNKNOWN)
        if not len(left):
            break
        found[left] = _in_slots(mine, theirs[left], 64 - bits - 7 * turn, bits)
    return found if exact else _checked(pairs, found)


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


def _in_slots(known: NDArray[np.uint64], wanted: NDArray[np.uint64], shift: int, bits: int) -> NDArray[np.int64]:
    """The position of each wanted hash among the known ones, if that one holds its slot."""
    table = np.zeros(1 << bits, dtype=np.int64)
    table[_slots(known, shift, bits)] = np.arange(len(known))
    at = table[_slots(wanted, shift, bits)]
    at[known[at] != wanted] = UNKNOWN
    return at


def _slots(hashes: NDArray[np.uint64], shift: int, bits: int) -> NDArray[np.int64]:
    slots = hashes >> np.uint64(shift)
    if shift + bits < 64:
        slots &= np.uint64((1 << bits) - 1)
    return slots.view(np.int64)


def _checked(pairs: Sequence[tuple[pl.Series, pl.Series]], found: NDArray[np.int64]) -> NDArray[np.int64]:
    """Without those whose hash was found but whose key is another."""
    at = np.maximum(found, 0)
    for known, rows in pairs:
        held = known[at]
        same = rows.eq_missing(held) if known.null_count() or rows.null_count() else rows == held
        if not same.all():
            found[~same.to_numpy()] = UNKNOWN
    return found
