"""Pairs among a step's own rows, by one sort and a sweep.

All rows of both sides become words ``hash · time · place`` and are sorted once. Rows with equal keys then stand
together by time, so a row's partners are the ones just behind it: compare every row with its next, then those that
are still close with the one after, and so on until none is. Each round is one pass over contiguous memory, which
beats searching for every row when partners are few.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenflow.operators.join_index import Positions

_HASH_BITS_MIN = 16
_ROUNDS_MAX = 64


def sweep(
    hashes: NDArray[np.uint64], stamps: Positions, left: NDArray[np.bool_], within_us: int | None
) -> tuple[Positions, Positions] | None:
    """Places of a left and a right row with the same hash and times at most ``within_us`` apart, earlier one first.

    Rows are in their one order by time. None: there are too many partners or too long a time for this way.
    """
    n = len(stamps)
    span = int(stamps[-1] - stamps[0]) if n and within_us is not None else 0
    place_bits, time_bits = n.bit_length(), span.bit_length()
    if 64 - place_bits - time_bits < _HASH_BITS_MIN:
        return None
    shift = np.uint64(place_bits + time_bits)
    words = hashes >> shift << shift
    if within_us is not None:
        words |= (stamps - stamps[0]).view(np.uint64) << np.uint64(place_bits)
    words |= np.arange(n, dtype=np.uint64)
    words.sort()
    places = (words & np.uint64((1 << place_bits) - 1)).view(np.int64)
    return _close_pairs(words >> np.uint64(place_bits), places, left[places], np.uint64(min(within_us or 0, span)))


def _close_pairs(
    words: NDArray[np.uint64], places: Positions, left: NDArray[np.bool_], reach: np.uint64
) -> tuple[Positions, Positions] | None:
    n = len(words)
    active = np.flatnonzero(words[1:] - words[:-1] <= reach)
    pairs: list[tuple[Positions, Positions]] = []
    distance = 1
    while len(active):
        if distance > _ROUNDS_MAX or (distance > _ROUNDS_MAX // 4 and 2 * len(active) > n):
            return None
        mixed = active[left[active] != left[active + distance]]
        pairs.append((places[mixed], places[mixed + distance]))
        distance += 1
        active = active[: np.searchsorted(active, n - distance)]
        active = active[words[active + distance] - words[active] <= reach]
    if not pairs:
        return places[:0], places[:0]
    return np.concatenate([earlier for earlier, _ in pairs]), np.concatenate([later for _, later in pairs])
