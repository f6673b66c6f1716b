"""SUnion: several inputs as one deterministic sequence, bucket by bucket (Borealis §3.2).

Rows lie in buckets of ``tuple_time // bucket``. A bucket is complete when every input's *stable* boundary has
reached its end; complete buckets leave in order, and each replica sees the same rows in the same order. What an
incomplete bucket holds so far can be looked at without taking it, for tentative work; a stable boundary supersedes
the tentative rows before it. *When* an incomplete bucket is looked at is not decided here: this is a buffer without
a clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Generic, TypeVar

from sortedcontainers import SortedDict

from evenflow.operators.bucket import Bucket
from evenflow.operators.errors import InvariantError
from evenflow.operators.kernel import Kernel
from evenflow.operators.times import START, floor

R = TypeVar("R")


class SUnion(Generic[R]):
    """The buffer of one serialised point of a query network.

    >>> from evenflow.operators.kernel import ListKernel
    >>> union = SUnion(ListKernel(), empty=([], []), bucket_us=10)
    >>> union.insert(0, [(3, "a"), (12, "b")], boundary=20)
    >>> union.complete_upto
    -9223372036854775808
    >>> union.insert(1, [(1, "c")], boundary=15)
    >>> union.complete_upto, union.take(union.complete_upto)
    (10, ([(3, 'a')], [(1, 'c')]))
    """

    def __init__(self, kernel: Kernel[R], empty: Sequence[R], bucket_us: int) -> None:
        self.bucket_us = bucket_us
        self.boundaries = [START] * len(empty)
        """Each input's stable boundary."""
        self.tentative_boundaries = [START] * len(empty)
        self.cursor = START
        """Everything before has been taken."""
        self._kernel = kernel
        self._empty = tuple(empty)
        self._buckets: SortedDict[int, Bucket[R]] = SortedDict()
        self._tentative: list[set[int]] = [set() for _ in empty]

    @property
    def complete_upto(self) -> int:
        """The end of the last bucket that is complete on every input."""
        return max(self.cursor, floor(min(self.boundaries), self.bucket_us))

    @property
    def rows(self) -> int:
        """How many rows wait here."""
        return sum(
            self._kernel.count(part)
            for bucket in self._buckets.values()
            for lane in (bucket.stable, bucket.tentative)
            for parts in lane
            for part in parts
        )

    def insert(self, place: int, rows: R, boundary: int) -> None:
        """Stable rows of one input and the boundary behind them, as one."""
        self._check(place, rows, boundary)
        for index, part in self._kernel.buckets(rows, self.bucket_us):
            self._bucket(index).stable[place].append(part)
        self.boundaries[place] = boundary
        self._supersede(place, boundary)

    def insert_tentative(self, place: int, rows: R, boundary: int) -> None:
        """Tentative rows of one input. Those that stable rows or an earlier tentative boundary cover are known."""
        _, fresh = self._kernel.split(rows, max(self.boundaries[place], self.tentative_boundaries[place]))
        for index, part in self._kernel.buckets(fresh, self.bucket_us):
            self._bucket(index).tentative[place].append(part)
            self._tentative[place].add(index)
        self.tentative_boundaries[place] = max(boundary, self.tentative_boundaries[place])

    def clear_tentative(self, place: int, upto: int) -> None:
        """Tentative rows before ``upto`` are void; one that covers them all lets the tentative lane begin anew."""
        self._supersede(place, upto)
        if upto >= self.tentative_boundaries[place]:
            self.tentative_boundaries[place] = START

    def reached(self, place: int) -> int:
        """How far one input has come on either lane."""
        return max(self.boundaries[place], self.tentative_boundaries[place])

    def ready(self, rows_max: int | None) -> int:
        """The end of the complete buckets that hold about ``rows_max`` rows: at least one bucket, if there is one."""
        upto, rows = self.complete_upto, 0
        if rows_max is None:
            return upto
        index: int
        for index, bucket in self._buckets.items():
            if index * self.bucket_us >= upto:
                break
            rows += sum(self._kernel.count(part) for parts in bucket.stable for part in parts)
            if rows >= rows_max:
                return min(upto, (index + 1) * self.bucket_us)
        return upto

    @property
    def complete_rows(self) -> int:
        """How many rows lie in complete buckets."""
        upto = self.complete_upto
        buckets = takewhile(lambda item: item[0] * self.bucket_us < upto, self._buckets.items())
        return sum(self._kernel.count(part) for _, bucket in buckets for parts in bucket.stable for part in parts)

    def take(self, upto: int) -> tuple[R, ...]:
        """Remove and give each input's stable rows before ``upto``, the end of a complete bucket."""
        rows = self.look(upto)
        self.drop(upto)
        return rows

    def look(self, upto: int) -> tuple[R, ...]:
        """Each input's stable rows before ``upto``, the end of a complete bucket; they stay."""
        if upto > self.complete_upto:
            raise InvariantError(f"SUnion: bucket up to {upto} taken, but complete only up to {self.complete_upto}")
        parts: list[list[R]] = [[] for _ in self._empty]
        for index, bucket in self._buckets.items():
            if index * self.bucket_us >= upto:
                break
            for mine, theirs in zip(parts, bucket.stable, strict=True):
                mine += theirs
        return self._joined(parts)

    def restore(self, cursor: int, rows: Sequence[Sequence[R]], boundaries: Sequence[int]) -> None:
        """Stand where another one stood: these stable rows wait beyond ``cursor``."""
        self.cursor = cursor
        for place, (part, boundary) in enumerate(zip(self._joined(rows), boundaries, strict=True)):
            if boundary > START:
                self.insert(place, part, boundary)

    def waiting(self) -> tuple[tuple[R, ...], ...]:
        """Each input's stable rows as they came, complete or not; they stay."""
        buckets = self._buckets.values()
        return tuple(tuple(p for bucket in buckets for p in bucket.stable[i]) for i in range(len(self._empty)))

    def drop(self, upto: int) -> None:
        """Forget the buckets before ``upto``: they have been folded."""
        while self._buckets and self._buckets.peekitem(0)[0] * self.bucket_us < upto:
            self._buckets.popitem(0)
        self.cursor = max(self.cursor, upto)

    def peek(self, since: int, upto: int) -> tuple[R, ...]:
        """Each input's rows in the buckets from ``since`` to ``upto``: stable ones, then tentative ones."""
        parts: list[list[R]] = [[] for _ in self._empty]
        first = None if since == START else floor(since, self.bucket_us) // self.bucket_us
        for index in self._buckets.irange(first, None):
            if index * self.bucket_us >= upto:
                break
            bucket = self._buckets[index]
            for place, mine in enumerate(parts):
                mine += bucket.stable[place] + bucket.tentative[place]
        return self._joined(parts)

    def _joined(self, parts: Sequence[Sequence[R]]) -> tuple[R, ...]:
        kernel = self._kernel
        return tuple(
            kernel.concat(part) if len(part) > 1 else (part[0] if part else empty)
            for part, empty in zip(parts, self._empty, strict=True)
        )

    def _bucket(self, index: int) -> Bucket[R]:
        bucket: Bucket[R] | None = self._buckets.get(index)
        if bucket is None:
            bucket = self._buckets[index] = Bucket(len(self._empty))
        return bucket

    def _check(self, place: int, rows: R, boundary: int) -> None:
        promised = self.boundaries[place]
        if boundary < promised:
            raise InvariantError(f"SUnion: the stable boundary of input {place} fell from {promised} to {boundary}")
        if self._kernel.earliest(rows) < promised:
            raise InvariantError(f"SUnion: input {place} sent a stable row from before its boundary {promised}")

    def _supersede(self, place: int, boundary: int) -> None:
        """Drop the tentative rows that a stable boundary covers."""
        for index in [index for index in self._tentative[place] if index * self.bucket_us < boundary]:
            bucket = self._buckets.get(index)
            rest = [self._kernel.split(part, boundary)[1] for part in bucket.tentative[place]] if bucket else []
            rest = [part for part in rest if self._kernel.count(part)]
            if bucket:
                bucket.tentative[place] = rest
                if bucket.empty:
                    del self._buckets[index]
            if not rest:
                self._tentative[place].discard(index)
