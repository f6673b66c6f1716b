"""A running aggregate: it never closes, and gives one row for every row that comes in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from evenflow.operators.grouping import Codes, Groups
from evenflow.operators.items import TUPLE_TIME
from evenflow.operators.kernel import keep, stack, take
from evenflow.operators.lookup import split_touched
from evenflow.operators.operator import Gives, Operator, Schema, Step
from evenflow.operators.packing import Segments
from evenflow.operators.sums import Aggregation

_BLOCK_CELLS = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class RunningState:
    """One accumulator a key; or, over the last ``rows``, those of a key's last rows."""

    open: Segments = ()


class RunningAggregate(Operator[RunningState]):
    """Each key's aggregate so far, the row itself included.

    >>> import evenflow as ef
    >>> net = ef.Network("doc")
    >>> sales = net.source("sales", {"price": pl.Int64})
    >>> _ = sales.running().agg(mean=ef.mean("price")).output("mean")
    >>> rows = pl.DataFrame({"tuple_time": [1, 2, 3], "price": [4, 8, 3]})
    >>> ef.fold(net, {"sales": rows})["mean"]["mean"].to_list()
    [4.0, 6.0, 5.0]
    """

    state_type = RunningState
    gives = Gives.EACH

    def __init__(self, aggregation: Aggregation, output: Schema) -> None:
        self.aggregation = aggregation
        self.keys = aggregation.keys
        self.output = output
        self._empty = pl.DataFrame(schema={TUPLE_TIME: pl.Int64, **output})

    def __repr__(self) -> str:
        return f"running(by={list(self.keys)})"

    def schema(self, inputs: Schema) -> Schema:
        return self.output

    def step(self, state: RunningState, rows: pl.DataFrame, upto: int) -> Step[RunningState]:
        if not rows.height:
            return Step(state, self._empty, upto)
        inputs = self.aggregation.inputs(rows)
        mine, others = split_touched(state.open, inputs, self.keys)
        kept, scanned = self._scan(stack([*mine, self.aggregation.lift(inputs, [])]), rows.height)
        state = RunningState((stack([*others, kept]),))
        columns = self.aggregation.ordered(self.aggregation.final(scanned))
        out = pl.DataFrame([inputs[TUPLE_TIME], *(inputs[key] for key in self.keys), *columns])
        return Step(state, out, upto)

    def _scan(self, accumulators: pl.DataFrame, new: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        """What is kept of these keys, and the accumulators as they stood at each of the last ``new`` rows."""
        groups = Groups.by([accumulators[key] for key in self.keys], accumulators.height)
        columns = []
        for name, aggregate in self.aggregation.incremental.items():
            names = self.aggregation.fields(name)
            scanned = aggregate.scan([accumulators[column] for column in names], groups)
            columns += [column.alias(label) for column, label in zip(scanned, names, strict=True)]
        frame = pl.DataFrame([*(accumulators[key] for key in self.keys), *columns])
        return take(frame, groups.last()), frame.slice(accumulators.height - new)

    def settle(self, state: RunningState) -> RunningState:
        return RunningState(tuple(_by_keys(segment, self.keys) for segment in state.open))


class RunningRowsAggregate(RunningAggregate):
    """The same over each key's last ``n`` rows. Every result is a fold of its own over those rows."""

    def __init__(self, n: int, aggregation: Aggregation, output: Schema) -> None:
        super().__init__(aggregation, output)
        self.n = n

    def __repr__(self) -> str:
        return f"running(by={list(self.keys)}, rows={self.n})"

    def _scan(self, accumulators: pl.DataFrame, new: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        groups = Groups.by([accumulators[key] for key in self.keys], accumulators.height)
        rank = groups.ranks()
        order = np.argsort(groups.codes, kind="stable")
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        rows = np.arange(accumulators.height - new, accumulators.height)
        block = max(1, _BLOCK_CELLS // self.n)
        folded = [
            self._fold_last(accumulators, order, place[part], rank[part])
            for part in (rows[at : at + block] for at in range(0, new, block))
        ]
        still = rank >= groups.count()[groups.codes] - self.n
        return keep(accumulators, pl.Series(still)), stack(folded)

    def _fold_last(
        self,
        accumulators: pl.DataFrame,
        order: Codes,
        place: Codes,
        rank: Codes,
    ) -> pl.DataFrame:
        """For each row the fold of its key's last ``n`` rows, oldest first."""
        sizes = np.minimum(rank + 1, self.n)
        ends = np.cumsum(sizes)
        nth = np.arange(ends[-1]) - np.repeat(ends - sizes, sizes)
        members = order[np.repeat(place - sizes + 1, sizes) + nth]
        groups = Groups(np.repeat(np.arange(len(place)), sizes), len(place))
        return self.aggregation.fold(take(accumulators, members), groups, list(self.keys))


def _by_keys(rows: pl.DataFrame, keys: tuple[str, ...]) -> pl.DataFrame:
    return rows.sort(list(keys), maintain_order=True) if keys else rows
