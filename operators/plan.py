"""A node's compiled plan: its inputs, the fragments between them, and the outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import polars as pl

from evenflow.operators.fragment import Fragment
from evenflow.operators.items import TUPLE_TIME
from evenflow.operators.operator import Schema

R = TypeVar("R")


class FoldFragment(Protocol[R]):
    """What a head needs of a fragment, whatever its rows are."""

    @property
    def inputs(self) -> tuple[int, ...]: ...

    @property
    def leaves(self) -> tuple[int, ...]: ...

    @property
    def horizon(self) -> int | None: ...

    @property
    def blocking(self) -> bool: ...

    def initial(self) -> Any: ...

    def step(self, state: Any, rows: Sequence[R], upto: int) -> tuple[Any, Mapping[int, tuple[R, int]]]: ...


class FoldPlan(Protocol[R]):
    """What a node needs of a plan, whatever its rows are."""

    @property
    def names(self) -> Mapping[int, str]: ...

    @property
    def inputs(self) -> tuple[int, ...]: ...

    @property
    def fragments(self) -> Sequence[FoldFragment[R]]: ...

    @property
    def outputs(self) -> Mapping[str, int]: ...

    def empty(self, stream: int) -> R: ...


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Streams are known by number. Fragments come in an order in which each follows those it reads."""

    names: Mapping[int, str]
    schemas: Mapping[int, Schema]
    inputs: tuple[int, ...]
    fragments: tuple[Fragment, ...]
    outputs: Mapping[str, int]

    def empty(self, stream: int) -> pl.DataFrame:
        """No rows of a stream, in its types."""
        return pl.DataFrame(schema={TUPLE_TIME: pl.Int64, **self.schemas[stream]})

    @property
    def horizon(self) -> int | None:
        """How much input rebuilds the whole state, or None if some operator needs a transfer or a checkpoint."""
        reach = dict.fromkeys(self.inputs, 0)
        for fragment in self.fragments:
            own = fragment.horizon
            if own is None:
                return None
            before = max(reach[stream] for stream in fragment.inputs)
            reach |= dict.fromkeys(fragment.leaves, before + own)
        return max(reach.values(), default=0)
