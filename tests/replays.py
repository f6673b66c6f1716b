"""Redo by passes, without Spark: what the replay's tests share."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

import evenflow as ef
from evenflow.engine.runtime.replay.run import Progress, Replay
from evenflow.operators.fragment import Fragment, FragmentState
from evenflow.operators.kernel import FrameKernel, stack
from evenflow.operators.packing import Packed
from evenflow.queries.compile import compile_plan
from evenflow.reconcile.heads import Heads
from recipes import Inputs, slices


def in_process(function: Callable[[str], str], tasks: Sequence[str], progress: Progress) -> list[str]:
    """Tasks one after the other; the first of them twice, as a worker that died after its work would have it."""
    function(tasks[0])
    return [function(task) for task in tasks]


def by_passes(
    fragment: Fragment, state: FragmentState, rows: Sequence[pl.DataFrame], upto: int, parallelism: int
) -> tuple[FragmentState, dict[int, tuple[pl.DataFrame, int]]]:
    """What ``fragment.step`` gives, by passes."""
    streams = [stage.stream for stage in fragment.stages]
    with TemporaryDirectory() as folder:
        replay = Replay([fragment], fragment.leaves, Path(folder), parallelism, in_process)
        before = dict(zip(streams, state, strict=True))
        made, after = replay.run(dict(zip(fragment.inputs, rows, strict=True)), before, upto)
        leaves = {stream: (one.rows(), one.boundary) for stream, one in made.items()}
    return tuple(after.get(stream, before[stream]) for stream in streams), leaves


def redone_by_passes(
    net: ef.Network, inputs: Inputs, at: list[int], parallelism: int, rng: random.Random
) -> tuple[Inputs, list[Packed]]:
    """The stable rows with some steps taken by passes (0: none), and the settled states at the end."""
    plan = compile_plan(net.nodes, net.output_numbers)
    heads = Heads(plan, 100_000, FrameKernel())
    parts = {name: [plan.empty(number)] for name, number in plan.outputs.items()}
    if parallelism:
        for fragment in heads.fragments:
            fragment.redo._fragment = _Sometimes(fragment.fragment, parallelism, rng)  # type: ignore[attr-defined]
    for name, rows, boundary in slices(inputs, at):
        heads.insert(net.sources[name].number, rows, boundary)
        for output in heads.advance().outputs:
            parts[output.name].append(output.rows)
    packed = [
        stage.operator.pack(stage.operator.settle(part))
        for fragment in heads.fragments
        for stage, part in zip(fragment.fragment.stages, fragment.redo.state, strict=True)  # type: ignore[attr-defined]
    ]
    return {name: stack(rows) for name, rows in parts.items()}, packed


class _Sometimes:
    """A fragment, some of whose steps are taken by passes."""

    def __init__(self, fragment: Any, parallelism: int, rng: random.Random) -> None:
        self._fragment = fragment
        self._parallelism = parallelism
        self._rng = rng

    def step(self, state: Any, rows: Any, upto: int) -> Any:
        if self._rng.random() < 0.5:
            return self._fragment.step(state, rows, upto)
        return by_passes(self._fragment, state, rows, upto, self._parallelism)
