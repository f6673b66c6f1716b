"""A Parquet file that is written part by part and appears under its name when it is complete."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq


class Table:
    """Rows for one file. Without any, it is written all the same, with its columns."""

    def __init__(self, path: Path, empty: pl.DataFrame) -> None:
        self.path = path
        self.rows = 0
        self._empty = empty
        self._partial = path.with_name(f".{path.name}.partial")
        self._writer: pq.ParquetWriter | None = None

    def write(self, rows: pl.DataFrame) -> None:
        table: pa.Table = rows.to_arrow()
        if self._writer is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = pq.ParquetWriter(self._partial, table.schema, compression="zstd")
        self._writer.write_table(table)
        self.rows += rows.height

    def finish(self) -> None:
        """Give the file its name."""
        if self._writer is None:
            self.write(self._empty)
        if self._writer is not None:
            self._writer.close()
        self._partial.replace(self.path)

    def discard(self) -> None:
        """Leave nothing behind."""
        if self._writer is not None:
            self._writer.close()
        self._partial.unlink(missing_ok=True)
