"""Session windows: a key's rows that follow each other closely, ended by a silence of at least ``gap``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from evenflow.operators.grouping import Codes, Groups
from evenflow.operators.items import TUPLE_TIME
from evenflow.operators.kernel import keep, stack, take
from evenflow.operators.lookup import split_touched
from evenflow.operators.operator import Gives, Operator, Schema, Step
from evenflow.operators.packing import Scalar, Segments
from evenflow.operators.segments import append, count
from evenflow.operators.sums import Aggregation
from evenflow.operators.times import FINAL, later, readable
from evenflow.operators.window import END, FIRST, FOLD_ROWS, window_rows

LAST = ":last"


@dataclass(frozen=True, slots=True, eq=False)
class SessionState:
    """``open``: accumulators by key with the session's first and last time. ``next_close``: no session ends before."""

    open: Segments = ()
    pending: Segments = ()
    raw: Segments = ()
    next_close: int = FINAL


class SessionAggregate(Operator[SessionState]):
    """A session is ``[first row, last row + gap)``; a row at its end or later begins the next one.

    >>> import evenflow as ef
    >>> net = ef.Network("doc")
    >>> clicks = net.source("clicks", {"user": pl.String})
    >>> _ = clicks.session("10s", by="user").agg(n=ef.count()).output("visits")
    >>> rows = pl.DataFrame({"tuple_time": [0, 4_000_000, 14_000_000], "user": ["a", "a", "a"]})
    >>> ef.fold(net, {"clicks": rows})["visits"].select("window_start", "window_end", "n").rows()
    [(0, 14000000, 2), (14000000, 24000000, 1)]
    """

    state_type = SessionState
    gives = Gives.GROUPS

    def __init__(self, gap_us: int, aggregation: Aggregation, output: Schema) -> None:
        self.gap_us = gap_us
        self.aggregation = aggregation
        self.keys = aggregation.keys
        self.output = output
        self._empty = pl.DataFrame(schema={TUPLE_TIME: pl.Int64, **output})

    def __repr__(self) -> str:
        return f"session({readable(self.gap_us)}, by={list(self.keys)})"

    def schema(self, inputs: Schema) -> Schema:
        return self.output

    def step(self, state: SessionState, rows: pl.DataFrame, upto: int) -> Step[SessionState]:
        state = _without_empty(state)
        if rows.height:
            state = self._collect(state, rows)
        waiting = count(state.pending)
        if not (waiting or state.open) or (upto < state.next_close and waiting <= FOLD_ROWS):
            return Step(state, self._empty, self._boundary(state, upto))
        sessions = self._sessions(state)
        closed = (sessions[LAST] + self.gap_us <= upto) if upto != FINAL else sessions[LAST] == sessions[LAST]
        raw, closed_raw = self._split_raw(state, upto)
        out = self._emit(keep(sessions, closed), closed_raw)
        still = self._latest(keep(sessions, ~closed))
        soonest = int(still[LAST].to_numpy().min()) + self.gap_us if still.height else FINAL
        state = SessionState((still,) if still.height else (), (), raw, soonest)
        return Step(state, out, self._boundary(state, upto))

    def _collect(self, state: SessionState, rows: pl.DataFrame) -> SessionState:
        raw = append(state.raw, self.aggregation.raw(rows)) if self.aggregation.closing else ()
        pending = append(state.pending, self.aggregation.inputs(rows))
        soonest = int(rows[TUPLE_TIME].to_numpy()[0]) + self.gap_us
        return replace(state, pending=pending, raw=raw, next_close=min(state.next_close, soonest))

    def _sessions(self, state: SessionState) -> pl.DataFrame:
        """Open sessions with the pending rows folded onto them or into sessions of their own."""
        if not state.pending:
            return stack(state.open)
        inputs = stack(state.pending)
        mine, others = split_touched(state.open, inputs, self.keys)
        stamps = inputs[TUPLE_TIME]
        lifted = self.aggregation.lift(inputs, [stamps.alias(FIRST), stamps.alias(LAST)])
        accumulators = stack([*(part[lifted.columns] for part in mine), lifted])
        order, number = self._numbered(accumulators, accumulators[FIRST], accumulators[LAST])
        accumulators = take(accumulators, order)
        groups = Groups(number, int(number.max(initial=-1)) + 1)
        folded = self.aggregation.fold(accumulators, groups, [FIRST, *self.keys])
        folded = folded.with_columns(accumulators[LAST][groups.last()])
        return stack([*(part[folded.columns] for part in others), folded])

    def _numbered(self, rows: pl.DataFrame, first: pl.Series, last: pl.Series) -> tuple[Codes, Codes]:
        """The rows' order by key, and in that order the number of the session each belongs to."""
        codes = Groups.by([rows[key] for key in self.keys], rows.height).codes
        order = np.argsort(codes, kind="stable")
        starts, ends = first.to_numpy()[order], last.to_numpy()[order]
        fresh = np.ones(rows.height, dtype=bool)
        fresh[1:] = (codes[order][1:] != codes[order][:-1]) | (starts[1:] - ends[:-1] >= self.gap_us)
        return order, np.cumsum(fresh) - 1

    def _split_raw(self, state: SessionState, upto: int) -> tuple[Segments, pl.DataFrame | None]:
        """Rows of sessions still open, and of those that close with their session's end."""
        if not state.raw:
            return (), None
        raw = stack(state.raw)
        order, number = self._numbered(raw, raw[TUPLE_TIME], raw[TUPLE_TIME])
        groups = Groups(number, int(number.max()) + 1)
        stamps = raw[TUPLE_TIME].to_numpy()[order]
        first, last = stamps[groups.first()][number], stamps[groups.last()][number]
        window = (pl.Series(FIRST, first), pl.Series(END, last + self.gap_us))
        closes = pl.Series(last + self.gap_us <= upto) if upto != FINAL else pl.Series(np.ones(len(last), dtype=bool))
        numbered = take(raw, order).with_columns(window)
        still = keep(numbered, ~closes).drop(FIRST, END)
        by_time = still.sort(TUPLE_TIME, maintain_order=True)
        return (by_time,) if still.height else (), keep(numbered, closes)

    def _emit(self, closed: pl.DataFrame, raw: pl.DataFrame | None) -> pl.DataFrame:
        """Sessions by their end, then key."""
        if not closed.height:
            return self._empty
        by = [END, *self.keys]
        heads = closed.with_columns((closed[LAST] + self.gap_us).alias(END)).sort(by, maintain_order=True)
        columns = self.aggregation.final(heads)
        if raw is not None:
            evaluated = self.aggregation.close(raw, [FIRST, *by]).sort(by, maintain_order=True)
            columns += [evaluated[f":{name}"].alias(name) for name in self.aggregation.closing]
        return window_rows(heads, self.aggregation, columns, self._empty)

    def _latest(self, sessions: pl.DataFrame) -> pl.DataFrame:
        """By last time, so that a key's next row always finds its session before it."""
        return sessions.sort(LAST, maintain_order=True)

    def settle(self, state: SessionState) -> SessionState:
        state = _without_empty(state)
        if not (state.open or state.pending):
            return SessionState()
        sessions = self._sessions(state).sort([LAST, *self.keys])
        raw = stack(state.raw).sort([TUPLE_TIME, *self.keys], maintain_order=True) if state.raw else None
        soonest = int(sessions[LAST].to_numpy().min()) + self.gap_us
        return SessionState((sessions,), (), (raw,) if raw is not None else (), soonest)

    def merge_scalars(self, scalars: Sequence[Mapping[str, Scalar]]) -> Mapping[str, Scalar]:
        return {"next_close": min(int(part["next_close"] or 0) for part in scalars)}

    def _boundary(self, state: SessionState, upto: int) -> int:
        """An open session may end as soon as its silence is long enough; a new one not before its gap has passed."""
        return max(min(state.next_close, later(upto, self.gap_us)), later(upto, 1))


def _without_empty(state: SessionState) -> SessionState:
    """Without the empty segments that unpacking a key range may leave."""
    if all(map(len, (*state.open, *state.pending, *state.raw))):
        return state
    open_, pending, raw = (tuple(filter(len, table)) for table in (state.open, state.pending, state.raw))
    return SessionState(open_, pending, raw, state.next_close)
