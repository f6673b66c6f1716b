"""One side of a join, kept as segments in which a key's rows of a stretch of time are found by bisection.

Each row has an index word: 24 bits of its key's hash, then 40 bits of its time. A segment is ordered by that word,
so a small bucket finds the rows with its keys in its band of time by two searches, and never scans the window.
Different keys may share a hash; whoever asks compares the keys of what was found.

Times count from the start of a *block* of 2⁴⁰ µs (12.7 days), and no segment reaches over a block's end.
Neighbouring segments are joined as they grow, up to a quarter of the band, so that there are few of them and old
ones fall away whole.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenflow.operators.kernel import stack, take, times
from evenflow.operators.keys import key_hash
from evenflow.operators.packing import Segments

INDEX = ":index"
NUMBER = ":n"
Positions = NDArray[np.int64]
Words = NDArray[np.uint64]

_TIME_BITS = 40
_TIME_MASK = np.uint64((1 << _TIME_BITS) - 1)
_HASH_MASK = ~_TIME_MASK
_BLOCK_US = 1 << _TIME_BITS
NOTHING: Positions = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """Rows of one block with their words in order; ``order`` says where each lies among the rows (None: there)."""

    rows: pl.DataFrame
    words: Words
    order: Positions | None
    oldest: int
    newest: int

    @property
    def block(self) -> int:
        return self.oldest // _BLOCK_US * _BLOCK_US

    @classmethod
    def of(cls, segment: pl.DataFrame) -> Side:
        return cls(segment, segment[INDEX].to_numpy(), None, *span(segment))

    def segment(self) -> pl.DataFrame:
        """The rows in the order of their words, as a segment to be kept."""
        rows = self.rows if self.order is None else take(self.rows, self.order)
        return rows.insert_column(0, pl.Series(INDEX, self.words))


_SPANS: dict[int, tuple[int, int]] = {}


def span(segment: pl.DataFrame) -> tuple[int, int]:
    """A segment's oldest and newest time, looked for once: a bucket must not scan every segment."""
    known = _SPANS.get(id(segment))
    if known is None:
        stamps = times(segment)
        known = _SPANS[id(segment)] = (int(stamps.min()), int(stamps.max()))
        weakref.finalize(segment, _SPANS.pop, id(segment), None)
    return known


def numbered(rows: pl.DataFrame, first: int) -> pl.DataFrame:
    """The rows with their numbers on this side of the join."""
    return pl.DataFrame([pl.Series(NUMBER, np.arange(first, first + rows.height)), *rows.get_columns()])


def sides(rows: pl.DataFrame, keys: Sequence[str], first_number: int) -> list[Side]:
    """Rows in stream order, numbered and indexed, block by block."""
    if not rows.height:
        return []
    labelled = numbered(rows, first_number)
    bounds = np.flatnonzero(np.diff(times(rows) // _BLOCK_US)) + 1
    cuts = [0, *bounds.tolist(), rows.height]
    return [_side(labelled.slice(low, high - low), keys) for low, high in pairwise(cuts)]


def _side(rows: pl.DataFrame, keys: Sequence[str]) -> Side:
    stamps = times(rows)
    words = (key_hash(rows, keys) & _HASH_MASK) | (stamps.view(np.uint64) & _TIME_MASK)
    order = np.argsort(words)
    return Side(rows, words[order], order, int(stamps[0]), int(stamps[-1]))


def insert(segments: Segments, segment: pl.DataFrame, span_us_max: int | None) -> Segments:
    """The segments with one more, joined with smaller neighbours while they span no more than ``span_us_max``."""
    head = list(segments)
    while head and head[-1].height <= 2 * segment.height and _may_join(head[-1], segment, span_us_max):
        both = stack([head.pop(), segment])
        segment = take(both, np.argsort(both[INDEX].to_numpy()))
    return (*head, segment)


def _may_join(older: pl.DataFrame, newer: pl.DataFrame, span_us_max: int | None) -> bool:
    first, last = span(older)[0], span(newer)[1]
    if first // _BLOCK_US != last // _BLOCK_US:
        return False
    return span_us_max is None or last - first <= span_us_max


def expire(segments: Segments, before: int) -> Segments:
    """Leave out segments that lie wholly before a time."""
    return tuple(segment for segment in segments if span(segment)[1] >= before)


def probe(target: Side, probes: Side, within_us: int | None, earlier_us: int) -> tuple[Positions, Positions]:
    """Pairs that may match: rows of ``probes`` and rows of ``target`` with the same hash that came up to
    ``within_us`` (None: any time) and at least ``earlier_us`` before them. Positions in the sides' rows."""
    words, order = probes.words, probes.order if probes.order is not None else np.arange(len(probes.words))
    stamps = (words & _TIME_MASK).view(np.int64) + probes.block
    low = np.full(len(stamps), target.block) if within_us is None else np.maximum(stamps - within_us, target.block)
    high = np.minimum(stamps - earlier_us, target.block + _BLOCK_US - 1)
    reach = (low <= target.newest) & (high >= target.oldest) & (low <= high)
    if not reach.all():
        words, order, low, high = words[reach], order[reach], low[reach], high[reach]
    hashes = words & _HASH_MASK
    since = np.searchsorted(target.words, hashes | (low - target.block).view(np.uint64))
    until = np.searchsorted(target.words, hashes | (high - target.block).view(np.uint64), side="right")
    counts = until - since
    found = np.repeat(since - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))
    return np.repeat(order, counts), found if target.order is None else target.order[found]
