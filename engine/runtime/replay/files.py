"""Rows and states as files that any worker can read: uncompressed Arrow IPC, of which a part can be read."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import polars as pl

from evenflow.operators.items import TUPLE_TIME
from evenflow.operators.kernel import times
from evenflow.operators.packing import Packed
from evenflow.reconcile.partition import Times


class Piece(NamedTuple):
    """Some of the rows of a file, which stand together."""

    path: str
    start: int
    length: int


def write_rows(folder: Path, name: str, rows: pl.DataFrame) -> str:
    """Write rows under a name of their own: a task that runs twice does not disturb what it wrote before."""
    path = folder / f"{name}-{uuid4().hex}.arrow"
    rows.rechunk().write_ipc(path, compression="uncompressed", compat_level=pl.CompatLevel.newest())
    return str(path)


def read_rows(piece: Piece) -> pl.DataFrame:
    return pl.scan_ipc(piece.path, glob=False).slice(piece.start, piece.length).collect()


def read_times(path: str) -> Times:
    """When the rows of a file are, without reading the rest of them."""
    return times(pl.scan_ipc(path, glob=False).select(TUPLE_TIME).collect().rechunk())


def write_state(folder: Path, name: str, packed: Packed) -> str:
    path = folder / f"{name}-{uuid4().hex}.state"
    path.write_bytes(packed.to_bytes())
    return str(path)


def read_state(path: str) -> Packed:
    return Packed.from_bytes(Path(path).read_bytes())
