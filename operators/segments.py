"""Append-only tables as tuples of immutable segments."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from evenflow.operators.kernel import stack
from evenflow.operators.packing import Segments

SMALL_ROWS = 8192
"""Segments below this are joined, so that many tiny buckets do not become many tiny segments."""


def append(segments: Segments, rows: pl.DataFrame) -> Segments:
    """The segments with one more; small neighbours of like size become one, so there are few of them.

    >>> one = pl.DataFrame({"a": [1]})
    >>> segments = ()
    >>> for _ in range(100):
    ...     segments = append(segments, one)
    >>> [segment.height for segment in segments]
    [64, 32, 4]
    """
    if not rows.height:
        return segments
    head = list(segments)
    while head and head[-1].height <= rows.height and head[-1].height + rows.height <= SMALL_ROWS:
        rows = stack([head.pop(), rows])
    return (*head, rows)


def count(segments: Sequence[pl.DataFrame]) -> int:
    return sum(segment.height for segment in segments)
