"""One task's share of a pass: the same operators over a part of the rows, with what is needed to merge the parts.

Where rows are spread by key, the order of what comes out is told by *order columns* (``:o0``, ``:o1``, …) beside the
rows: sorted by them, the parts together are the one sequence that a single fold gives. Operators do not see them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenflow.operators.fragment import Stage
from evenflow.operators.items import TUPLE_TIME
from evenflow.operators.join import Join
from evenflow.operators.kernel import evaluate, stack, take, times
from evenflow.operators.keys import key_hash
from evenflow.operators.operator import ROW, Gives, Step, checked_step
from evenflow.operators.union import Union
from evenflow.reconcile.lowering import Pass, Write

STEP_ROWS = 131_072
"""Rows folded in one step: enough to be quick, few enough to hold what comes in between."""
Times = NDArray[np.int64]
ORDER = ":o"
TASK = ":task"
_PARTS_BITS = 64


@dataclass(frozen=True, slots=True, eq=False)
class Flow:
    """Rows in order, and where they must be merged with those of other tasks the columns that tell it."""

    rows: pl.DataFrame
    order: pl.DataFrame | None = None

    def slice(self, start: int, length: int) -> Flow:
        return Flow(self.rows.slice(start, length), None if self.order is None else self.order.slice(start, length))


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """What one task of a pass gave."""

    states: tuple[Any, ...]
    flows: Mapping[int, tuple[Flow, int]]
    """For each stream that leaves the pass its rows and the boundary behind them."""


def fold_part(work: Pass, states: Sequence[Any], flows: Sequence[Flow], upto: int) -> Part:
    """Fold one part of what a pass reads, a slice after the other; where it is cut does not change a bit."""
    streams = dict.fromkeys(write.stream for write in work.writes)
    pieces: dict[int, list[Flow]] = {stream: [] for stream in streams}
    boundaries: dict[int, int] = {}
    now = tuple(states)
    for slices, cut in _slices(flows, upto):
        now, outputs = _step(work, now, slices, cut)
        for stream in streams:
            flow, boundaries[stream] = outputs[stream]
            pieces[stream].append(flow)
    return Part(now, {stream: (_stacked(parts), boundaries[stream]) for stream, parts in pieces.items()})


def _slices(flows: Sequence[Flow], upto: int) -> Iterator[tuple[list[Flow], int]]:
    """The flows cut at times with about ``STEP_ROWS`` rows between them; rows of one time stay together."""
    stamps = [times(flow.rows) for flow in flows]
    merged = np.concatenate(stamps)
    cuts: list[int] = []
    if len(merged) > STEP_ROWS:
        merged.sort()
        cuts = sorted({int(time) for time in merged[STEP_ROWS::STEP_ROWS] if time > merged[0]})
    at = [0] * len(flows)
    for cut in [*cuts, upto]:
        ends = [len(mine) if cut == upto else int(np.searchsorted(mine, cut)) for mine in stamps]
        yield [flow.slice(start, end - start) for flow, start, end in zip(flows, at, ends, strict=True)], cut
        at = ends


def _step(
    work: Pass, states: tuple[Any, ...], flows: Sequence[Flow], upto: int
) -> tuple[tuple[Any, ...], dict[int, tuple[Flow, int]]]:
    outputs: dict[int, tuple[Flow, int]] = {}
    after: list[Any] = []
    for stage, before in zip(work.stages, states, strict=True):
        if stage is work.stages[0] and work.has_head:
            step, flow = _head_step(stage, before, flows, upto)
        else:
            step, flow = _stage_step(stage, before, *outputs.get(stage.reads, (flows[0], upto)))
        after.append(step.state)
        outputs[stage.stream] = (flow, step.boundary)
    return tuple(after), outputs


def _checked(stage: Stage, step: Step[Any], upto: int) -> Step[Any]:
    return step if stage.promised is None else checked_step(stage.operator, step, stage.promised, upto)


def _stage_step(stage: Stage, state: Any, flow: Flow, upto: int) -> tuple[Step[Any], Flow]:
    operator: Any = stage.operator
    gives = operator.gives if stage.promised is None else None
    rows, order = flow.rows, flow.order
    if gives == Gives.SOME and order is not None:
        rows = rows.with_columns(pl.int_range(rows.height, dtype=pl.Int64, eager=True).alias(ROW))
    step: Step[Any] = _checked(stage, operator.step(state, rows, upto), upto)
    if gives == Gives.GROUPS:
        return step, Flow(step.rows, _named([step.rows[name] for name in (TUPLE_TIME, *operator.keys)]))
    if gives == Gives.EACH:
        return step, Flow(step.rows, order)
    if gives == Gives.SOME and order is not None:
        order = take(order, step.rows[ROW].to_numpy())
        return step, Flow(step.rows.drop(ROW), order)
    return step, Flow(step.rows)


def _head_step(stage: Stage, state: Any, flows: Sequence[Flow], upto: int) -> tuple[Step[Any], Flow]:
    """Merge or join the inputs; the order of what comes out is told where that of all inputs is."""
    operator: Any = stage.operator
    if any(flow.order is None for flow in flows):
        step: Step[Any] = _checked(stage, operator.step(state, [flow.rows for flow in flows], upto), upto)
        return step, Flow(step.rows)
    first = np.cumsum([0, *(flow.rows.height for flow in flows)])
    numbered = [
        flow.rows.with_columns(pl.int_range(at, at + flow.rows.height, dtype=pl.Int64, eager=True).alias(ROW))
        for flow, at in zip(flows, first[:-1].tolist(), strict=True)
    ]
    step = operator.step(state, numbered, upto)
    at = step.rows[ROW].to_numpy()
    rows = step.rows.drop(ROW)
    if isinstance(operator, Join):
        return step, Flow(rows, _pair_order(operator, rows, _input_order(flows), at))
    return step, Flow(rows, _union_order(operator, rows, flows, at))


def _union_order(operator: Union, rows: pl.DataFrame, flows: Sequence[Flow], at: NDArray[np.int64]) -> pl.DataFrame:
    """By time, the user's tie break, input, and the place there."""
    ties = [evaluate(rows, expression) for expression in operator.tie_break] if rows.height else []
    if rows.height == 0:
        ties = [rows.select(expression).to_series() for expression in operator.tie_break]
    return _named([rows[TUPLE_TIME], *ties, *take(_input_order(flows), at)])


def _pair_order(operator: Join, rows: pl.DataFrame, inputs: pl.DataFrame, at: NDArray[np.int64]) -> pl.DataFrame:
    """By time; first left rows without a partner, by key, then pairs by the later row's place."""
    alone = pl.Series(at < 0)
    nothing = pl.Series([None]).new_from_index(0, rows.height) if rows.height else pl.Series([])
    keys = [
        rows[name].zip_with(alone, nothing.cast(rows.schema[name])) if rows.height else rows[name]
        for name in operator.left_on
    ]
    padded = stack([inputs, inputs.clear()])
    place = take(padded, np.maximum(at, 0)) if inputs.height else padded.clear()
    if not inputs.height and rows.height:  # every row stands alone: it has no place, and needs none
        place = pl.DataFrame([pl.Series(c.name, [None], dtype=c.dtype).new_from_index(0, rows.height) for c in inputs])
    return _named([rows[TUPLE_TIME], ~alone, *keys, *place])


def _input_order(flows: Sequence[Flow]) -> pl.DataFrame:
    """The inputs' order columns, one below the other, behind the number of the input."""
    orders = [flow.order for flow in flows if flow.order is not None]
    if any(order.dtypes != orders[0].dtypes for order in orders[1:]):
        orders = [_widened(place, orders) for place in range(len(orders))]
    numbers = [pl.repeat(place, order.height, dtype=pl.Int16, eager=True) for place, order in enumerate(orders)]
    return stack([_named([number, *order]) for number, order in zip(numbers, orders, strict=True)])


def _widened(place: int, orders: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """One input's order columns, with nulls in the columns of the others: the input's number is compared first."""
    height = orders[place].height
    columns: list[pl.Series] = []
    for other, order in enumerate(orders):
        mine = other == place
        columns += [column if mine else pl.repeat(None, height, dtype=column.dtype, eager=True) for column in order]
    return _named(columns)


def _named(columns: Sequence[pl.Series]) -> pl.DataFrame:
    return pl.DataFrame([column.alias(f"{ORDER}{i}") for i, column in enumerate(columns)])


def _stacked(parts: Sequence[Flow]) -> Flow:
    orders = [part.order for part in parts if part.order is not None]
    return Flow(stack([part.rows for part in parts]), stack(orders) if len(orders) == len(parts) else None)


def written(write: Write, flow: Flow, parts: int) -> tuple[pl.DataFrame, list[int]]:
    """What a task writes of a stream: its rows, those for each task of the next pass together, and where each begins.

    With them go the order columns where they are asked for; of a stream that is in order the place in this part.
    """
    columns = list(flow.rows)
    if write.told and flow.order is not None:
        columns += list(flow.order)
    elif write.told:
        columns.append(pl.int_range(flow.rows.height, dtype=pl.Int64, eager=True).alias(f"{ORDER}0"))
    rows = pl.DataFrame(columns)
    if not write.keys or parts == 1:
        return rows, [0, rows.height]
    return grouped(rows, write.keys, parts)


def grouped(rows: pl.DataFrame, keys: Sequence[str], parts: int) -> tuple[pl.DataFrame, list[int]]:
    """The rows by key range, each range in order, and where each begins; the last entry is the end."""
    lows = np.array([(part << _PARTS_BITS) // parts for part in range(parts)], dtype=np.uint64)
    owner = (np.searchsorted(lows, key_hash(rows, keys), side="right") - 1).astype(
        np.uint8 if parts < 256 else np.uint16
    )
    order = np.argsort(owner, kind="stable")
    offsets = np.concatenate(([0], np.cumsum(np.bincount(owner, minlength=parts))))
    return take(rows, order), [int(offset) for offset in offsets]


def received(files: Sequence[pl.DataFrame], in_order: bool, placed: bool) -> Flow:
    """The rows that several tasks wrote for one, in order; with order columns if they must be handed on."""
    told = any(name.startswith(ORDER) for name in files[0].columns)
    if in_order and told:
        numbers = [pl.repeat(i, part.height, dtype=pl.Int32, eager=True).alias(TASK) for i, part in enumerate(files)]
        files = [part.with_columns(number) for part, number in zip(files, numbers, strict=True)]
    rows = stack(files)
    names = [name for name in rows.columns if name.startswith(ORDER)]
    if not in_order and len(files) > 1:
        rows = rows.sort(names, maintain_order=True)
    order = [TASK, *names] if in_order and told else names
    kept = _named([rows[name] for name in order]) if placed and order else None
    return Flow(rows.drop(order), kept)
