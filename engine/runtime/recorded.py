"""Recorded input: files and folders of Parquet, CSV, JSON lines or Arrow, read in a source's types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import polars as pl
from polars.datatypes import TemporalType

from evenflow.operators.errors import InputError, nearest
from evenflow.operators.items import TUPLE_TIME
from evenflow.queries.source import Source

Types = Mapping[str, pl.DataType]


def _scan_csv(path: Path, types: Types) -> pl.LazyFrame:
    return _parsed(pl.scan_csv(path, schema_overrides=_as_text(types), infer_schema_length=None, glob=False), types)


def _scan_jsonl(path: Path, types: Types) -> pl.LazyFrame:
    return _parsed(pl.scan_ndjson(path, schema_overrides=_as_text(types), infer_schema_length=None), types)


def _as_text(types: Types) -> dict[str, pl.DataType]:
    """Times are written as text in these files."""
    return {name: pl.String() if isinstance(dtype, TemporalType) else dtype for name, dtype in types.items()}


def _parsed(rows: pl.LazyFrame, types: Types) -> pl.LazyFrame:
    there = rows.collect_schema()
    times = {name: dtype for name, dtype in types.items() if isinstance(dtype, TemporalType) and name in there}
    return rows.with_columns(pl.col(name).str.strptime(dtype, strict=True) for name, dtype in times.items())


SCANNERS: Mapping[str, Callable[[Path, Types], pl.LazyFrame]] = {
    ".parquet": lambda path, _: pl.scan_parquet(path, glob=False),
    ".csv": _scan_csv,
    ".jsonl": _scan_jsonl,
    ".ndjson": _scan_jsonl,
    ".arrow": lambda path, _: pl.scan_ipc(path, glob=False),
    ".ipc": lambda path, _: pl.scan_ipc(path, glob=False),
}


def read(path: Path, source: Source) -> pl.DataFrame:
    """All rows of a file, or of a folder's files one after the other."""
    parts = []
    for file in files_of(path):
        try:
            parts.append(_scan(file, source).collect())
        except (pl.exceptions.PolarsError, OSError) as error:
            raise _unreadable(file, error) from error
    return pl.concat(parts, how="vertical_relaxed") if len(parts) > 1 else parts[0]


def read_parts(path: Path, source: Source, rows_max: int) -> Iterator[tuple[Path, pl.DataFrame]]:
    """The same rows, at most about ``rows_max`` at a time, each part with the file it is from."""
    for file in files_of(path):
        try:
            for part in _scan(file, source).collect_batches(chunk_size=rows_max, maintain_order=True):
                yield file, part
        except (pl.exceptions.PolarsError, OSError) as error:
            raise _unreadable(file, error) from error


def files_of(path: Path) -> list[Path]:
    """The file, or all files of a folder by name. Names that begin with a dot or an underscore are not data."""
    if path.is_file():
        found = [path]
    elif path.is_dir():
        inside = (file for file in sorted(path.rglob("*")) if file.is_file())
        found = [file for file in inside if not any(p[0] in "._" for p in file.relative_to(path).parts)]
        if not found:
            raise InputError(f"there are no files in {path}")
    else:
        raise InputError(f"there is no file or folder {path}")
    for file in found:
        if file.suffix not in SCANNERS:
            raise InputError(f"{file}: the ending {file.suffix!r} is not known; {nearest(file.suffix, SCANNERS)}")
    return found


def _scan(file: Path, source: Source) -> pl.LazyFrame:
    """A file's columns that the source wants; all of them where one is missing, so that the error can say more."""
    types = ({} if source.time is not None else {TUPLE_TIME: pl.Int64()}) | dict(source.schema)
    rows = SCANNERS[file.suffix](file, types)
    return rows.select(list(types)) if types.keys() <= set(rows.collect_schema()) else rows


def _unreadable(file: Path, error: Exception) -> InputError:
    return InputError(f"{file}: {str(error).splitlines()[0]}")
