"""Windows of a number of rows: each key's first ``n`` rows, its next ``n``, and so on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from evenflow.operators.grouping import Codes, Groups
from evenflow.operators.items import TUPLE_TIME
from evenflow.operators.kernel import keep, stack, take
from evenflow.operators.lookup import split_touched
from evenflow.operators.operator import ROW, Gives, Operator, Schema, Step
from evenflow.operators.packing import Segments
from evenflow.operators.sums import Aggregation
from evenflow.operators.window import END, FIRST, window_rows

SIZE = ":rows"


@dataclass(frozen=True, slots=True, eq=False)
class CountState:
    """``open``: one accumulator for each key whose window is not full, with the rows it holds."""

    open: Segments = ()
    raw: Segments = ()


class CountAggregate(Operator[CountState]):
    """A window closes with its ``n``-th row, and takes that row's time and place in the stream.

    A window that is not full when the input ends never closes.

    >>> import evenflow as ef
    >>> net = ef.Network("doc")
    >>> ticks = net.source("ticks", {"price": pl.Int64})
    >>> _ = ticks.window(rows=2).agg(high=ef.max("price")).output("highs")
    >>> rows = pl.DataFrame({"tuple_time": [1, 2, 3], "price": [5, 4, 9]})
    >>> ef.fold(net, {"ticks": rows})["highs"].select("window_start", "window_end", "high").rows()
    [(1, 2, 5)]
    """

    state_type = CountState
    gives = Gives.SOME

    def __init__(self, n: int, aggregation: Aggregation, output: Schema) -> None:
        self.n = n
        self.aggregation = aggregation
        self.keys = aggregation.keys
        self.output = output
        self._empty = pl.DataFrame(schema={TUPLE_TIME: pl.Int64, **output})

    def __repr__(self) -> str:
        return f"window(rows={self.n}, by={list(self.keys)})"

    def schema(self, inputs: Schema) -> Schema:
        return self.output

    def step(self, state: CountState, rows: pl.DataFrame, upto: int) -> Step[CountState]:
        if not rows.height:
            return Step(state, self._told(self._empty, rows, np.empty(0, dtype=np.int64)), upto)
        mine, others = split_touched(state.open, rows, self.keys)
        accumulators, window, size = self._by_window(mine, rows)
        full = size == self.n
        raw, closed_raw = self._split_raw(state, rows)
        folded = self.aggregation.fold(accumulators, window, [FIRST, *self.keys])
        ends = accumulators[END][window.last()]
        folded = folded.with_columns(ends.alias(END), pl.Series(SIZE, size))
        last = window.last()
        closing = np.flatnonzero(full)
        closing = closing[np.argsort(last[closing], kind="stable")]
        out = self._emit(folded, closing, closed_raw)
        out = self._told(out, rows, last[closing] - (accumulators.height - rows.height))
        still = stack([keep(folded, pl.Series(~full)), *(segment[folded.columns] for segment in others)])
        return Step(CountState((still,) if still.height else (), raw), out, upto)

    def _by_window(self, open_: Segments, rows: pl.DataFrame) -> tuple[pl.DataFrame, Groups, Codes]:
        """Open windows and new rows as accumulators, which window each belongs to, and the rows in each window."""
        inputs = self.aggregation.inputs(rows)
        stamps = inputs[TUPLE_TIME]
        ones = pl.Series(SIZE, np.ones(rows.height, dtype=np.int64))
        lifted = self.aggregation.lift(inputs, [stamps.alias(FIRST), stamps.alias(END), ones])
        carried = [segment.select(lifted.columns) for segment in open_]
        accumulators = stack([*carried, lifted])
        sizes = accumulators[SIZE].to_numpy()
        keys = Groups.by([accumulators[key] for key in self.keys], accumulators.height)
        order = np.argsort(keys.codes, kind="stable")
        seen = np.cumsum(sizes[order])
        starts = np.flatnonzero(np.diff(keys.codes[order], prepend=-1))
        before = np.repeat(seen[starts] - sizes[order][starts], np.diff(np.append(starts, len(order))))
        nth = np.empty(len(order), dtype=np.int64)
        nth[order] = (seen - before - 1) // self.n
        window = Groups.by([pl.Series(keys.codes), pl.Series(nth)], len(order))
        return accumulators, window, window.sum(sizes)

    def _split_raw(self, state: CountState, rows: pl.DataFrame) -> tuple[Segments, pl.DataFrame | None]:
        """Rows of windows still open, and of those now full with the number of their window."""
        if not self.aggregation.closing:
            return (), None
        mine, others = split_touched(state.raw, rows, self.keys)
        raw = stack([*mine, self.aggregation.raw(rows)])
        keys = Groups.by([raw[key] for key in self.keys], raw.height)
        nth = keys.ranks() // self.n
        window = Groups.by([pl.Series(keys.codes), pl.Series(nth)], raw.height)
        done = window.count() == self.n
        closed = pl.Series(done[window.codes])
        numbered = raw.with_columns(pl.Series(":window", window.codes))
        still = stack([*others, keep(raw, ~closed)])
        return (still,) if still.height else (), keep(numbered, closed)

    def _told(self, out: pl.DataFrame, rows: pl.DataFrame, last: Codes) -> pl.DataFrame:
        """The windows with the ROW of the row that closed each, where rows have one."""
        return out.with_columns(take(rows[[ROW]], last)) if ROW in rows.columns else out

    def _emit(self, folded: pl.DataFrame, full: Codes, raw: pl.DataFrame | None) -> pl.DataFrame:
        """Full windows, which come in the order of their last rows."""
        if not len(full):
            return self._empty
        heads = take(folded, full)
        columns = self.aggregation.final(heads)
        if raw is not None:
            by_last = raw.with_row_index(":at").group_by(":window").agg(pl.col(":at").max())
            closed = self.aggregation.close(raw, [":window"]).join(by_last, on=":window").sort(":at")
            columns += [closed[f":{name}"].alias(name) for name in self.aggregation.closing]
        return window_rows(heads, self.aggregation, columns, self._empty)

    def settle(self, state: CountState) -> CountState:
        open_ = tuple(segment.sort(list(self.keys)) if self.keys else segment for segment in state.open)
        raw = tuple(segment.sort([TUPLE_TIME, *self.keys], maintain_order=True) for segment in state.raw)
        return replace(state, open=open_, raw=raw)
