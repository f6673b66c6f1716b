"""One source's recorded rows: admitted as live ones are, and kept on disk in runs that are each in order of time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from evenflow.engine.runtime.backfill.table import Table
from evenflow.engine.runtime.recorded import read_parts
from evenflow.engine.runtime.replay.files import Piece, read_rows, read_times, write_rows
from evenflow.operators.errors import InputError
from evenflow.operators.items import TUPLE_TIME
from evenflow.operators.kernel import in_order, stack, times
from evenflow.operators.times import FINAL, START, floor
from evenflow.queries.source import REASON, ROW, Source
from evenflow.reconcile.partition import Times

PART_ROWS = 1_000_000
"""Rows read, admitted and sorted at a time."""
SAMPLED = 1024
"""Of so many rows, the time of one is remembered, to cut the whole into stretches."""
Given = Path | pl.DataFrame


class Run(NamedTuple):
    """Some of a source's rows in order of time, in a file."""

    path: str
    first: int
    last: int


class Recording:
    """What one source recorded, as far as it was read."""

    def __init__(self, source: Source, folder: Path, rejected: Path) -> None:
        self.source = source
        self.rows = 0
        self.bytes = 0
        self.samples: list[Times] = []
        self.refused: Table | None = None
        self.first_refused = ""
        """Which row was refused first, and why."""
        self._rejected = rejected
        self._folder = folder
        self._runs: list[Run] = []
        self._newest = START
        self._seen = 0
        self._empty = pl.DataFrame(schema={TUPLE_TIME: pl.Int64, **source.schema})

    def read(self, given: Given, rows_max: int = PART_ROWS) -> Iterator[int]:
        """Take all rows of a frame, or of a file or folder; tells after each part how many rows there were."""
        parts = [(None, given)] if isinstance(given, pl.DataFrame) else read_parts(given, self.source, rows_max)
        for file, part in parts:
            try:
                self.add(part)
            except InputError as error:
                raise InputError(f"{file}: {error}" if file is not None else str(error)) from error
            yield self._seen

    def add(self, rows: pl.DataFrame) -> None:
        """Take further rows, in the order in which they were recorded."""
        taken, refused = self.source.admit(rows, self._newest)
        if refused.height:
            self._refuse(refused)
        self._seen += rows.height
        if not taken.height:
            return
        ordered = in_order(taken)
        stamps = times(ordered)
        self.rows += ordered.height
        self.bytes += int(ordered.estimated_size())
        self.samples.append(stamps[::SAMPLED].copy())
        self._newest = max(self._newest, int(stamps[-1]))
        path = write_rows(self._folder, f"run-{len(self._runs)}", ordered)
        self._runs.append(Run(path, int(stamps[0]), int(stamps[-1])))

    def _refuse(self, refused: pl.DataFrame) -> None:
        row, reason = (name if name not in self.source.schema else f":{name}" for name in (ROW, REASON))
        numbered = refused.with_columns(pl.col(row) + self._seen)
        if self.refused is None:
            self.refused = Table(self._rejected, numbered.clear())
            self.first_refused = f"row {numbered[row][0]}: {numbered[reason][0]}"
        self.refused.write(numbered)

    def between(self, since: int, upto: int) -> pl.DataFrame:
        """The rows of a stretch of time in order; those of equal time as they were recorded."""
        parts = [self._empty]
        for run in self._runs:
            if run.last >= since and run.first < upto:
                stamps = read_times(run.path)
                first = int(np.searchsorted(stamps, since))
                last = len(stamps) if upto == FINAL else int(np.searchsorted(stamps, upto))
                parts.append(read_rows(Piece(run.path, first, last - first)))
        return in_order(stack(parts)).rechunk()


def stretches(recordings: Sequence[Recording], bytes_max: int, bucket_us: int) -> list[int]:
    """Ends of buckets that cut time into stretches of about ``bytes_max`` each; the last one is the end of all."""
    n_bytes = sum(one.bytes for one in recordings)
    samples = [part for one in recordings for part in one.samples]
    if n_bytes <= bytes_max or not samples:
        return [FINAL]
    stamps = np.sort(np.concatenate(samples))
    each = max(1, int(len(stamps) * bytes_max / n_bytes))
    ends = {floor(int(time), bucket_us) for time in stamps[each::each]}
    return [*sorted(end for end in ends if end > stamps[0]), FINAL]
