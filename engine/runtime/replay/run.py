"""Runs the passes of a replay one after the other: spill, tasks, and the merge of what they wrote.

Where tasks run is not known here: ``run_tasks`` takes a function and what each task is told, and gives what each
answered. A task may run twice; only the files that a report names count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from evenflow.engine.runtime.replay.files import Piece, read_rows, read_state, read_times, write_rows, write_state
from evenflow.engine.runtime.replay.task import Order, Report, Worker, has_state
from evenflow.operators.fingerprint import kernel_fingerprint
from evenflow.operators.fragment import Fragment, Stage
from evenflow.operators.keys import KeyRange
from evenflow.operators.times import FINAL, START
from evenflow.reconcile.lowering import GIVEN, Pass, Read, Spread, Write, lower
from evenflow.reconcile.partition import Flow, received, written

Progress = Callable[[float], None]
RunTasks = Callable[[Callable[[str], str], Sequence[str], Progress], list[str]]
_SAMPLES = 1024


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """A stream as tasks wrote it: a file each, where each part begins in it, and the boundary behind all."""

    files: tuple[str, ...]
    offsets: tuple[tuple[int, ...], ...]
    in_order: bool
    boundary: int

    def rows(self) -> pl.DataFrame:
        """All of it, in order."""
        pieces = [Piece(path, 0, ends[-1]) for path, ends in zip(self.files, self.offsets, strict=True)]
        return received([read_rows(piece) for piece in pieces], self.in_order, placed=False).rows


@dataclass(slots=True, eq=False)
class Replay:
    """Fragments over given input up to a time, spread over ``parallelism`` tasks."""

    fragments: Sequence[Fragment]
    leaves: Sequence[int]
    folder: Path
    parallelism: int
    run_tasks: RunTasks
    progress: Progress = lambda share: None
    passes: list[Pass] = field(init=False)
    _made: dict[tuple[int, int, int | None], Made] = field(init=False, default_factory=dict)
    """Streams by (pass that made it, stream, pass that reads it)."""

    def __post_init__(self) -> None:
        self.passes = lower(self.fragments, self.leaves)

    def run(
        self, inputs: Mapping[int, pl.DataFrame], states: Mapping[int, Any] | None, upto: int
    ) -> tuple[dict[int, Made], dict[int, Any]]:
        """The leaves, and the new states by stream where old ones are given (else there are only initial ones)."""
        for work in self.passes:
            for read in work.reads:
                if read.made_by == GIVEN:
                    self._spill(work, read, inputs[read.stream])
        worker = Worker(self.passes, [self._orders(work) for work in self.passes], states is not None, _fingerprint())
        after: dict[int, Any] = {}
        for done, work in enumerate(self.passes):
            orders = self._orders_of(work, states, upto)
            told = [msgspec.json.encode(order).decode() for order in orders]
            answers = self.run_tasks(worker, told, lambda share, done=done: self._told(done + share))  # type: ignore[misc]
            reports = [msgspec.json.decode(answer, type=Report) for answer in answers]
            self._keep(work, reports)
            if states is not None:
                after |= _merged_states(work, reports)
        self._told(len(self.passes))
        return {write.stream: self._made[w.number, write.stream, None] for w, write in self._leaf_writes()}, after

    def _told(self, done: float) -> None:
        self.progress(done / len(self.passes))

    def _leaf_writes(self) -> list[tuple[Pass, Write]]:
        return [(work, write) for work in self.passes for write in work.writes if write.to is None]

    def _parts(self, work: Pass) -> int:
        return 1 if work.spread == Spread.ONE else self.parallelism

    def _spill(self, work: Pass, read: Read, rows: pl.DataFrame) -> None:
        """Write given rows as a pass would: partitioned by the key of the operators that read them."""
        write = Write(read.stream, work.number, in_order=True, told=work.placed, keys=read.keys)
        grouped, offsets = written(write, Flow(rows), self._parts(work))
        path = write_rows(self.folder, f"input-stream{read.stream}", grouped)
        self._made[GIVEN, read.stream, work.number] = Made((path,), (tuple(offsets),), True, FINAL)

    def _orders(self, work: Pass) -> list[bool]:
        """Of each stream that a pass reads, whether its files stand in order."""
        return [r.made_by == GIVEN or self.passes[r.made_by].spread != Spread.KEYS for r in work.reads]

    def _orders_of(self, work: Pass, states: Mapping[int, Any] | None, upto: int) -> list[Order]:
        parts = self._parts(work)
        made = [self._made[read.made_by, read.stream, work.number] for read in work.reads]
        pieces = [_by_time(made, parts)] if work.spread == Spread.TIME else None
        reads = pieces[0] if pieces else [[_part(one, task, parts) for one in made] for task in range(parts)]
        upto = upto if work.has_head else min(one.boundary for one in made)
        over = [1 if write.to is None else self._parts(self.passes[write.to]) for write in work.writes]
        return [
            Order(work.number, task, str(self.folder), reads[task], upto, over, self._states(work, states, task, parts))
            for task in range(parts)
        ]

    def _states(self, work: Pass, states: Mapping[int, Any] | None, task: int, parts: int) -> list[str | None]:
        if states is None:
            return [None] * len(work.stages)
        key_range = KeyRange.partition(task, parts) if parts > 1 else None
        return [self._state(stage, states[stage.stream], key_range) for stage in work.stages]

    def _state(self, stage: Stage, state: Any, key_range: KeyRange | None) -> str | None:
        if not has_state(stage):
            return None
        return write_state(self.folder, f"before-stream{stage.stream}", stage.operator.pack(state, key_range))

    def _keep(self, work: Pass, reports: Sequence[Report]) -> None:
        for place, write in enumerate(work.writes):
            self._made[work.number, write.stream, write.to] = Made(
                tuple(report.files[place] for report in reports),
                tuple(tuple(report.offsets[place]) for report in reports),
                write.in_order,
                min(report.boundaries[place] for report in reports),
            )


def _fingerprint() -> Any:
    return kernel_fingerprint()


def _part(made: Made, task: int, parts: int) -> list[Piece]:
    """What a task reads of a stream that was spread by key, or of all of it if there is but one task."""
    if parts == 1:
        return [Piece(path, 0, ends[-1]) for path, ends in zip(made.files, made.offsets, strict=True)]
    return [
        Piece(path, ends[task], ends[task + 1] - ends[task])
        for path, ends in zip(made.files, made.offsets, strict=True)
    ]


def _by_time(made: Sequence[Made], parts: int) -> list[list[list[Piece]]]:
    """For each task and stream the pieces of a stretch of time; the stretches hold about as many rows each."""
    stamps = [[read_times(path) for path in one.files] for one in made]
    samples = np.concatenate([s[:: max(1, len(s) // _SAMPLES)] for one in stamps for s in one])
    samples.sort()
    cuts = sorted({int(samples[len(samples) * i // parts]) for i in range(1, parts)}) if len(samples) else []
    ends = [START, *cuts, *[FINAL] * (parts - len(cuts))]
    pieces: list[list[list[Piece]]] = []
    for task in range(parts):
        share = []
        for one, columns in zip(made, stamps, strict=True):
            cut = [_between(column, ends[task], ends[task + 1]) for column in columns]
            share.append([Piece(path, at, n) for path, (at, n) in zip(one.files, cut, strict=True)])
        pieces.append(share)
    return pieces


def _between(stamps: Any, since: int, upto: int) -> tuple[int, int]:
    first = 0 if since == START else int(np.searchsorted(stamps, since))
    last = len(stamps) if upto == FINAL else int(np.searchsorted(stamps, upto))
    return (first, last - first) if since != FINAL else (len(stamps), 0)


def _merged_states(work: Pass, reports: Sequence[Report]) -> dict[int, Any]:
    """The states of a pass's stages after it, by stream; those without one are left out."""
    after: dict[int, Any] = {}
    for place, stage in enumerate(work.stages):
        paths = [report.states[place] for report in reports]
        states = [stage.operator.unpack(read_state(path)) for path in paths if path is not None]
        if states:
            after[stage.stream] = states[0] if len(states) == 1 else stage.operator.merge(states)
    return after
