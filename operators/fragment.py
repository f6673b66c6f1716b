"""A fragment: what follows one SUnion up to the next one or to an SOutput, as a single fold.

Its operators form a tree below the head. The state is the tuple of theirs, so a checkpoint of a whole fragment is
one reference, and ``step`` is as pure as each operator's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from evenflow.operators.keys import KeyRange
from evenflow.operators.operator import HeadOperator, Operator, Schema, Step, checked_step
from evenflow.operators.packing import Packed

FragmentState = tuple[Any, ...]
FROM_SUNION = -1


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """One operator of a fragment and the stream whose rows it reads; the head reads the SUnion (``FROM_SUNION``)."""

    stream: int
    operator: Operator[Any] | HeadOperator[Any]
    reads: int
    promised: Schema | None = None
    """The attributes that a user's own operator said it gives; every step of it is held to them."""


@dataclass(frozen=True, slots=True, eq=False)
class Fragment:
    """Stages in order, each after the one it reads; ``leaves`` are the streams that go on from here."""

    inputs: tuple[int, ...]
    stages: tuple[Stage, ...]
    leaves: tuple[int, ...]

    def initial(self) -> FragmentState:
        return tuple(stage.operator.initial() for stage in self.stages)

    def step(
        self, state: FragmentState, rows: Sequence[pl.DataFrame], upto: int
    ) -> tuple[FragmentState, Mapping[int, tuple[pl.DataFrame, int]]]:
        """Fold each input's rows of complete buckets; gives every leaf's rows and boundary."""
        outputs: dict[int, tuple[pl.DataFrame, int]] = {}
        states: list[Any] = []
        for stage, before in zip(self.stages, state, strict=True):
            if isinstance(stage.operator, HeadOperator):
                step: Step[Any] = stage.operator.step(before, rows, upto)
            else:
                step = stage.operator.step(before, *outputs[stage.reads])
            if stage.promised is not None:
                step = checked_step(stage.operator, step, stage.promised, upto)
            states.append(step.state)
            outputs[stage.stream] = (step.rows, step.boundary)
        return tuple(states), {leaf: outputs[leaf] for leaf in self.leaves}

    @property
    def horizon(self) -> int | None:
        """How much input rebuilds the state: the longest sum along a path, or None if an operator has none."""
        total = {FROM_SUNION: 0}
        for stage in self.stages:
            own = stage.operator.horizon
            if own is None:
                return None
            total[stage.stream] = total[stage.reads] + own
        return max(total.values())

    @property
    def blocking(self) -> bool:
        return any(stage.operator.blocking for stage in self.stages)

    def settle(self, state: FragmentState) -> FragmentState:
        return tuple(stage.operator.settle(part) for stage, part in zip(self.stages, state, strict=True))

    def pack(
        self, state: FragmentState, key_range: KeyRange | None = None, since: FragmentState | None = None
    ) -> tuple[Packed, ...]:
        older = since if since is not None else (None,) * len(state)
        parts = zip(self.stages, state, older, strict=True)
        return tuple(stage.operator.pack(part, key_range, before) for stage, part, before in parts)

    def unpack(self, packed: Sequence[Packed], base: FragmentState | None = None) -> FragmentState:
        older = base if base is not None else (None,) * len(packed)
        parts = zip(self.stages, packed, older, strict=True)
        return tuple(stage.operator.unpack(part, before) for stage, part, before in parts)
