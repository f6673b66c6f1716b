"""States as portable values: for a disk, another node or a Spark task.

A state is a frozen dataclass whose fields are either *tables* (tuples of immutable frames, its segments) or plain
scalars. Since segments never change, what is new since an older state is found by identity: a delta names the
segments that the receiver already has by their place and carries the others.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import polars as pl

from evenflow.operators.errors import InvariantError

S = TypeVar("S")
Segments = tuple[pl.DataFrame, ...]
Scalar = int | float | str | bool | None

_HEADER_LENGTH_BYTES = 8


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """Scalars and tables of one operator's state; an integer in a table is a segment of the receiver's base."""

    scalars: Mapping[str, Scalar]
    tables: Mapping[str, tuple[pl.DataFrame | int, ...]]

    @property
    def rows(self) -> int:
        """How many rows it carries: the cost of moving it."""
        return sum(part.height for parts in self.tables.values() for part in parts if isinstance(part, pl.DataFrame))

    def to_bytes(self) -> bytes:
        """A JSON header, then each carried segment as an Arrow IPC file."""
        blobs: list[bytes] = []
        layout: dict[str, list[dict[str, int]]] = {}
        for name, parts in self.tables.items():
            layout[name] = []
            for part in parts:
                if isinstance(part, int):
                    layout[name].append({"base": part})
                else:
                    buffer = io.BytesIO()
                    part.write_ipc(buffer)
                    blobs.append(buffer.getvalue())
                    layout[name].append({"bytes": len(blobs[-1])})
        header = json.dumps({"scalars": dict(self.scalars), "tables": layout}).encode()
        return len(header).to_bytes(_HEADER_LENGTH_BYTES, "little") + header + b"".join(blobs)

    @classmethod
    def from_bytes(cls, data: bytes) -> Packed:
        at = _HEADER_LENGTH_BYTES + int.from_bytes(data[:_HEADER_LENGTH_BYTES], "little")
        header = json.loads(data[_HEADER_LENGTH_BYTES:at])
        tables: dict[str, tuple[pl.DataFrame | int, ...]] = {}
        for name, layout in header["tables"].items():
            parts: list[pl.DataFrame | int] = []
            for entry in layout:
                if "base" in entry:
                    parts.append(entry["base"])
                else:
                    parts.append(pl.read_ipc(io.BytesIO(data[at : at + entry["bytes"]])))
                    at += entry["bytes"]
            tables[name] = tuple(parts)
        return cls(header["scalars"], tables)

    def same_as(self, other: Packed) -> bool:
        """Whether both hold the same values, nulls and NaN alike."""
        return (
            dict(self.scalars) == dict(other.scalars)
            and self.tables.keys() == other.tables.keys()
            and all(
                len(mine) == len(theirs) and all(map(_same_part, mine, theirs))
                for mine, theirs in ((self.tables[name], other.tables[name]) for name in self.tables)
            )
        )


def _same_part(mine: pl.DataFrame | int, theirs: pl.DataFrame | int) -> bool:
    if isinstance(mine, pl.DataFrame) and isinstance(theirs, pl.DataFrame):
        return mine.schema == theirs.schema and mine.equals(theirs)
    return isinstance(mine, int) and isinstance(theirs, int) and mine == theirs


def tables_of(state: Any) -> dict[str, Segments]:
    """The fields of a state that are tables."""
    values = {field.name: getattr(state, field.name) for field in fields(state)}
    return {name: value for name, value in values.items() if isinstance(value, tuple)}


def scalars_of(state: Any) -> dict[str, Scalar]:
    """The fields of a state that are not tables."""
    values = {field.name: getattr(state, field.name) for field in fields(state)}
    return {name: value for name, value in values.items() if not isinstance(value, tuple)}


def pack_state(state: Any, select: Callable[[str, pl.DataFrame], pl.DataFrame] | None, since: Any | None) -> Packed:
    """Pack a state: only the rows that ``select`` keeps, only the segments that ``since`` does not have."""
    known = tables_of(since) if since is not None else {}
    tables: dict[str, tuple[pl.DataFrame | int, ...]] = {}
    for name, segments in tables_of(state).items():
        place = {id(segment): i for i, segment in enumerate(known.get(name, ()))}
        tables[name] = tuple(
            place[id(segment)] if id(segment) in place else (select(name, segment) if select else segment)
            for segment in segments
        )
    return Packed(scalars_of(state), tables)


def unpack_state(kind: type[S], packed: Packed, base: S | None) -> S:
    """The state that was packed; a delta needs the ``base`` it was made against."""
    known = tables_of(base) if base is not None else {}

    def segment(name: str, part: pl.DataFrame | int) -> pl.DataFrame:
        if isinstance(part, pl.DataFrame):
            return part
        if part >= len(known.get(name, ())):
            raise InvariantError(f"a packed delta needs segment {part} of table {name!r}, which its base does not have")
        return known[name][part]

    tables = {name: tuple(segment(name, part) for part in parts) for name, parts in packed.tables.items()}
    return kind(**packed.scalars, **tables)
