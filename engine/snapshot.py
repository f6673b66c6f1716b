"""A node's stable side as one value: what a restarted replica needs to go on where another one, or it itself, stood.

Everything in it is immutable and shared with the node that made it: taking one costs as much as its references. What
it takes on a disk or on a wire is the driver's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from evenflow.operators.items import Boundary, Data
from evenflow.reconcile.heads import FragmentSnapshot

R = TypeVar("R")


class Position(NamedTuple):
    """Where an input stood."""

    next_id: int
    boundary: int
    seen: int


@dataclass(frozen=True, slots=True, eq=False)
class OutputSnapshot(Generic[R]):
    """An output's numbering (Borealis §3.5: restarted replicas go on with a peer's ids) and its log."""

    produced: int
    log: tuple[Data[R], ...]
    last: Boundary
    first_id: int


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot(Generic[R]):
    """All of it, of one moment."""

    fragments: tuple[FragmentSnapshot[R], ...]
    inputs: Mapping[int, Position]
    outputs: Mapping[str, OutputSnapshot[R]]
