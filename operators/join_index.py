"""One side of a join, kept as segments in which a key's rows are found by bisection.

A segment holds rows ordered by ``(hash of the key, position)``; rows come in time order, so a key's rows lie
together and by time. A small bucket asks each segment for its keys and its band of time, and never scans it.
Neighbouring segments are joined as they grow, up to a quarter of the band, so that there are few of them and old
ones fall away whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenflow.operators.kernel import stack, take, times
from evenflow.operators.keys import key_hash
from evenflow.operators.packing import Segments

HASH = ":hash"
NUMBER = ":n"
Index = NDArray[np.int64]

_POSITION_BITS = np.uint64(24)
_POSITION_MASK = np.uint64((1 << 24) - 1)
SEGMENT_ROWS_MAX = 1 << 24


def indexed(rows: pl.DataFrame, keys: Sequence[str], first_number: int) -> pl.DataFrame:
    """Rows in stream order as a segment: numbered, and ordered by ``(hash, number)``."""
    numbers = pl.Series(NUMBER, np.arange(first_number, first_number + rows.height, dtype=np.int64))
    hashes = pl.Series(HASH, key_hash(rows, keys) >> _POSITION_BITS)
    return _by_hash(pl.DataFrame([hashes, numbers, *rows.get_columns()]))


def _by_hash(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows that stand in stream order, ordered by their hash and then as they stood.

    One sort of ``hash · position`` words, which needs no stable and no indirect sort.
    """
    places = np.arange(rows.height, dtype=np.uint64)
    words = np.sort((rows[HASH].to_numpy() << _POSITION_BITS) | places)
    return take(rows, (words & _POSITION_MASK).astype(np.int64))


def in_stream_order(segments: Sequence[pl.DataFrame]) -> pl.DataFrame:
    return stack(segments).sort(NUMBER)


def insert(segments: Segments, segment: pl.DataFrame, span_us_max: int | None) -> Segments:
    """The segments with one more, joined with smaller neighbours while they span no more than ``span_us_max``."""
    head = list(segments)
    while head and head[-1].height <= 2 * segment.height and _may_join(head[-1], segment, span_us_max):
        segment = _by_hash(in_stream_order([head.pop(), segment]))
    return (*head, segment)


def _may_join(older: pl.DataFrame, newer: pl.DataFrame, span_us_max: int | None) -> bool:
    if older.height + newer.height > SEGMENT_ROWS_MAX:
        return False
    return span_us_max is None or int(times(newer).max()) - int(times(older).min()) <= span_us_max


def expire(segments: Segments, before: int) -> Segments:
    """Leave out segments that lie wholly before a time."""
    return tuple(segment for segment in segments if int(times(segment).max()) >= before)


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """Positions of matching rows: in the probing segment, and in the one that was asked."""

    probe: Index
    found: Index


def probe(segment: pl.DataFrame, probes: pl.DataFrame, low: Index | None, high: Index) -> Matches:
    """Rows of ``segment`` with a probe's hash and a time in ``[low, high]`` (``low`` None: any time up to it).

    ``probes`` is a segment too, so its hashes are sorted and the search runs along both.
    """
    hashes, stamps = segment[HASH].to_numpy(), times(segment)
    wanted = probes[HASH].to_numpy()
    first = np.searchsorted(hashes, wanted)
    run_end = _run_ends(hashes)
    inside = first < len(hashes)
    inside[inside] = hashes[first[inside]] == wanted[inside]
    at = np.flatnonzero(inside)
    first, last = first[at], run_end[first[at]]
    until = _bisect(stamps, first, last, high[at] + 1)
    since = first if low is None else _bisect(stamps, first, until, low[at])
    counts = until - since
    probe_at = np.repeat(at, counts)
    nth = np.arange(len(probe_at)) - np.repeat(np.cumsum(counts) - counts, counts)
    return Matches(probe_at, np.repeat(since, counts) + nth)


def _run_ends(hashes: NDArray[np.uint64]) -> Index:
    """For each row the end of the run of equal hashes it lies in."""
    starts = np.flatnonzero(hashes[1:] != hashes[:-1]) + 1
    bounds = np.concatenate(([0], starts, [len(hashes)]))
    return np.repeat(bounds[1:], np.diff(bounds))


def _bisect(stamps: Index, low: Index, high: Index, target: Index) -> Index:
    """For each i the first place in ``[low[i], high[i])`` whose time is not below ``target[i]``."""
    low, high = low.copy(), high.copy()
    while True:
        open_ = np.flatnonzero(low < high)
        if not len(open_):
            return low
        middle = (low[open_] + high[open_]) >> 1
        below = stamps[middle] < target[open_]
        low[open_[below]] = middle[below] + 1
        high[open_[~below]] = middle[~below]


def within_time(segment: pl.DataFrame, low: int | None, high: int) -> bool:
    """Whether a segment may hold rows between two times."""
    stamps = times(segment)
    return bool(len(stamps)) and int(stamps.min()) <= high and (low is None or int(stamps.max()) >= low)
