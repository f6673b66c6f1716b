"""The stable head: folds complete buckets only, whenever there are any.

It never goes back and never emits a row twice. Its state is made of immutable values, so keeping a checkpoint is
keeping a reference to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from evenflow.operators.fragment import FragmentState
from evenflow.operators.kernel import FrameKernel
from evenflow.operators.plan import Plan
from evenflow.operators.sunion import SUnion


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """Stable rows of an output stream and the boundary behind them."""

    name: str
    rows: pl.DataFrame
    boundary: int


class StableHead:
    """Folds a plan over its inputs' complete buckets."""

    def __init__(self, plan: Plan, bucket_us: int) -> None:
        kernel = FrameKernel()
        self.plan = plan
        self.state: tuple[FragmentState, ...] = tuple(fragment.initial() for fragment in plan.fragments)
        """A checkpoint is this reference."""
        self.sunions = [
            SUnion(kernel, [plan.empty(stream) for stream in fragment.inputs], bucket_us) for fragment in plan.fragments
        ]
        self._readers: dict[int, list[tuple[SUnion[pl.DataFrame], int]]] = {}
        for fragment, sunion in zip(plan.fragments, self.sunions, strict=True):
            for place, stream in enumerate(fragment.inputs):
                self._readers.setdefault(stream, []).append((sunion, place))
        self._names: dict[int, list[str]] = {}
        for name, stream in plan.outputs.items():
            self._names.setdefault(stream, []).append(name)

    def insert(self, stream: int, rows: pl.DataFrame, boundary: int) -> None:
        """Stable rows of an input stream, with the boundary behind them."""
        for sunion, place in self._readers.get(stream, ()):
            sunion.insert(place, rows, boundary)

    def advance(self) -> list[Output]:
        """Fold every bucket that is complete now, from the inputs to the outputs."""
        outputs: list[Output] = []
        states = list(self.state)
        for number, (fragment, sunion) in enumerate(zip(self.plan.fragments, self.sunions, strict=True)):
            upto = sunion.complete_upto
            if upto <= sunion.cursor:
                continue
            states[number], leaves = fragment.step(states[number], sunion.take(upto), upto)
            outputs += self._send(leaves)
        self.state = tuple(states)
        return outputs

    def _send(self, leaves: Mapping[int, tuple[pl.DataFrame, int]]) -> Iterator[Output]:
        for stream, (rows, boundary) in leaves.items():
            if stream not in self.plan.inputs:
                self.insert(stream, rows, boundary)
            for name in self._names.get(stream, ()):
                yield Output(name, rows, boundary)
