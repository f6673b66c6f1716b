"""What one worker does: read its share, fold it, write what came out. It is told as JSON and answers in JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from evenflow.engine.runtime.replay.files import Piece, read_rows, read_state, write_rows, write_state
from evenflow.operators.errors import EvenflowError
from evenflow.operators.fingerprint import Fingerprint, kernel_fingerprint
from evenflow.operators.fragment import Stage
from evenflow.operators.operator import NoState
from evenflow.reconcile.lowering import Pass
from evenflow.reconcile.partition import fold_part, received, written


class WorkerError(EvenflowError):
    """A worker that must not take part."""


class Order(msgspec.Struct, frozen=True):
    """One task: which pass, the pieces of each stream it reads, and where to write."""

    work: int
    task: int
    folder: str
    reads: list[list[Piece]]
    upto: int
    parts: list[int]
    """For each stream that the pass writes, over how many tasks the next pass spreads it."""
    states: list[str | None]


class Report(msgspec.Struct, frozen=True):
    """What a task wrote: for each stream a file, where each part begins in it, and the boundary; and its states."""

    files: list[str]
    offsets: list[list[int]]
    boundaries: list[int]
    states: list[str | None]


def has_state(stage: Stage) -> bool:
    """Whether a stage remembers anything that its output depends on."""
    return not stage.operator.by_row and stage.operator.state_type is not NoState


@dataclass(frozen=True, slots=True, eq=False)
class Worker:
    """Shipped to every worker: the passes, and what its kernel must be to compute the same bits."""

    passes: Sequence[Pass]
    in_order: Sequence[Sequence[bool]]
    """For each pass and stream that it reads, whether the tasks' files stand one after the other."""
    want_states: bool
    fingerprint: Fingerprint

    def __call__(self, told: str) -> str:
        difference = self.fingerprint.difference(kernel_fingerprint())
        if difference is not None:
            raise WorkerError(f"this worker would compute other bits than the node: {difference}")
        return msgspec.json.encode(self._carry_out(msgspec.json.decode(told, type=Order))).decode()

    def _carry_out(self, order: Order) -> Report:
        work = self.passes[order.work]
        flows = [
            received([read_rows(piece) for piece in pieces], in_order, work.placed)
            for pieces, in_order in zip(order.reads, self.in_order[order.work], strict=True)
        ]
        states = [_state(stage, path) for stage, path in zip(work.stages, order.states, strict=True)]
        part = fold_part(work, states, flows, order.upto)
        folder, name = Path(order.folder), f"pass{order.work}-task{order.task}"
        files, offsets = [], []
        for write, parts in zip(work.writes, order.parts, strict=True):
            rows, begins = written(write, part.flows[write.stream][0], parts)
            files.append(write_rows(folder, f"{name}-stream{write.stream}", rows))
            offsets.append(begins)
        kept: list[str | None] = [None] * len(work.stages)
        if self.want_states:
            kept = [
                write_state(folder, f"{name}-stage{i}", stage.operator.pack(state)) if has_state(stage) else None
                for i, (stage, state) in enumerate(zip(work.stages, part.states, strict=True))
            ]
        return Report(files, offsets, [part.flows[write.stream][1] for write in work.writes], kept)


def _state(stage: Stage, path: str | None) -> Any:
    return stage.operator.initial() if path is None else stage.operator.unpack(read_state(path))
