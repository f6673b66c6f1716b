"""Append-only tables as tuples of immutable segments."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from evenflow.operators.kernel import stack
from evenflow.operators.packing import Segments

SMALL_ROWS = 8192
SMALL_SEGMENTS_MAX = 32
"""So many segments of fewer than ``SMALL_ROWS`` rows may stand at the end before they become one: joining them one
by one would cost a bucket with a single row more than everything else that is done with it."""


def append(segments: Segments, rows: pl.DataFrame) -> Segments:
    """The segments with one more; small ones at the end are joined now and then, so there are few of them.

    >>> one = pl.DataFrame({"a": [1]})
    >>> segments = ()
    >>> for _ in range(100):
    ...     segments = append(segments, one)
    >>> [segment.height for segment in segments]
    [94, 1, 1, 1, 1, 1, 1]
    """
    if not rows.height:
        return segments
    longer = (*segments, rows)
    if len(longer) < SMALL_SEGMENTS_MAX or any(part.height >= SMALL_ROWS for part in longer[-SMALL_SEGMENTS_MAX:]):
        return longer
    return (*longer[:-SMALL_SEGMENTS_MAX], stack(longer[-SMALL_SEGMENTS_MAX:]))


def count(segments: Sequence[pl.DataFrame]) -> int:
    return sum(segment.height for segment in segments)
