"""Windowed aggregates that time closes: tumbling and sliding windows, and windows that end at the time in a column.

Rows wait in ``pending`` and are folded into one accumulator per pane and key when a window closes, or when many
wait. When they are folded does not change a bit, since each is a left fold in stream order.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from evenflow.operators.errors import DeclarationError
from evenflow.operators.grouping import is_constant
from evenflow.operators.items import TUPLE_TIME
from evenflow.operators.kernel import keep, stack, take, times
from evenflow.operators.operator import Gives, Operator, Schema, Step
from evenflow.operators.packing import Scalar, Segments
from evenflow.operators.panes import Times, TimeWindows
from evenflow.operators.segments import append, count
from evenflow.operators.sums import Aggregation
from evenflow.operators.times import FINAL, START, later

PANE = ":pane"
FIRST = ":start"
END = ":end"
WINDOW_START = "window_start"
WINDOW_END = "window_end"
FOLD_ROWS = 65_536
"""Rows that may wait before they are folded: enough to make the carried accumulators cheap, few enough to hold."""


@dataclass(frozen=True, slots=True, eq=False)
class WindowState:
    """``open``: accumulators by pane and key. ``raw``: rows kept for expressions evaluated on closing."""

    open: Segments = ()
    pending: Segments = ()
    raw: Segments = ()
    upto: int = START
    next_close: int = FINAL


class PaneAggregate(Operator[WindowState]):
    """What the two kinds of time-closed windows share: collect, fold, and close what time has passed."""

    state_type = WindowState
    gives = Gives.GROUPS
    keeps_rows = False

    def __init__(self, aggregation: Aggregation, output: Schema) -> None:
        self.aggregation = aggregation
        self.keys = aggregation.keys
        self.output = output
        self._empty = pl.DataFrame(schema={TUPLE_TIME: pl.Int64, **output})

    def schema(self, inputs: Schema) -> Schema:
        return self.output

    def step(self, state: WindowState, rows: pl.DataFrame, upto: int) -> Step[WindowState]:
        if rows.height:
            state = self._collect(state, rows)
        if upto < state.next_close:
            if count(state.pending) > FOLD_ROWS:
                state = self._fold(state)
            state = replace(state, upto=upto)
            return Step(state, self._empty, self._boundary(state))
        state = self._fold(state)
        out = self._emit(*self._closed(state, upto))
        state = self._kept(state, upto)
        return Step(state, out, self._boundary(state))

    def settle(self, state: WindowState) -> WindowState:
        state = self._fold(state)
        raw = stack(state.raw).sort([TUPLE_TIME, *self.keys], maintain_order=True) if state.raw else None
        accumulators = tuple(segment.sort([PANE, *self.keys]) for segment in state.open if segment.height)
        return replace(state, open=accumulators, raw=(raw,) if raw is not None and raw.height else ())

    def merge_scalars(self, scalars: Sequence[Mapping[str, Scalar]]) -> Mapping[str, Scalar]:
        soonest = min(int(part["next_close"] or 0) for part in scalars)
        return super().merge_scalars([{**part, "next_close": soonest} for part in scalars])

    def _collect(self, state: WindowState, rows: pl.DataFrame) -> WindowState:
        pending, raw = state.pending, state.raw
        if self.aggregation.incremental:
            pending = append(pending, self.aggregation.inputs(rows))
        if self.keeps_rows or self.aggregation.closing:
            raw = append(raw, self._raw(rows))
        return replace(state, pending=pending, raw=raw, next_close=self._next_close(state, rows))

    def _raw(self, rows: pl.DataFrame) -> pl.DataFrame:
        """What is kept of the rows until their window closes."""
        return self.aggregation.raw(rows)

    def _fold(self, state: WindowState) -> WindowState:
        if not state.pending:
            return state
        inputs = stack(state.pending)
        carried = state.open[0] if state.open else None
        folded = self.aggregation.extend(carried, inputs, self._window_columns(inputs), [PANE, *self.keys])
        return replace(state, open=(folded,), pending=())

    def _emit(self, accumulators: pl.DataFrame | None, raw: pl.DataFrame | None) -> pl.DataFrame:
        """Rows by window end, then key. Both frames, if there are two, hold the same windows and keys."""
        columns: list[pl.Series] = []
        heads: pl.DataFrame | None = None
        if accumulators is not None and accumulators.height:
            heads = self._in_order(accumulators)
            columns += self.aggregation.final(heads)
        if raw is not None and raw.height:
            closed = self._in_order(self.aggregation.close(raw, [FIRST, END, *self.keys]))
            columns += [closed[f":{name}"].alias(name) for name in self.aggregation.closing]
            heads = closed if heads is None else heads
        if heads is None:
            return self._empty
        return window_rows(heads, self.aggregation, columns, self._empty)

    def _in_order(self, closed: pl.DataFrame) -> pl.DataFrame:
        """By window end, then key. Mostly one window closes at a time; then sorting by the keys alone is faster."""
        by = self.keys if self.keys and is_constant(closed[END]) else (END, *self.keys)
        return closed.sort(by, maintain_order=True)

    @abstractmethod
    def _window_columns(self, inputs: pl.DataFrame) -> list[pl.Series]:
        """The pane of each row, and what else the window keeps of it."""

    @abstractmethod
    def _next_close(self, state: WindowState, rows: pl.DataFrame) -> int:
        """The earliest end of an open window, once these rows are in."""

    @abstractmethod
    def _closed(self, state: WindowState, upto: int) -> tuple[pl.DataFrame | None, pl.DataFrame | None]:
        """Accumulators and raw rows of the windows that close, with their window's start and end."""

    @abstractmethod
    def _kept(self, state: WindowState, upto: int) -> WindowState:
        """The state without what no open window needs."""

    @abstractmethod
    def _boundary(self, state: WindowState) -> int: ...


class WindowAggregate(PaneAggregate):
    """Tumbling (``every == size``) or sliding windows over time, by key.

    >>> import evenflow as ef
    >>> net = ef.Network("doc")
    >>> load = net.source("load", {"host": pl.String, "cpu": pl.Int64})
    >>> _ = load.window("2s", by="host").agg(total=ef.sum("cpu")).output("totals")
    >>> rows = pl.DataFrame({"tuple_time": [0, 1_500_000, 2_000_000], "host": ["a", "a", "a"], "cpu": [1, 2, 4]})
    >>> ef.fold(net, {"load": rows})["totals"].select("window_start", "window_end", "host", "total").rows()
    [(0, 2000000, 'a', 3), (2000000, 4000000, 'a', 4)]
    """

    def __init__(self, windows: TimeWindows, aggregation: Aggregation, output: Schema) -> None:
        super().__init__(aggregation, output)
        self.windows = windows

    def __repr__(self) -> str:
        return f"window({self.windows}, by={list(self.keys)})"

    @property
    def horizon(self) -> int | None:
        return self.windows.size_us

    def step(self, state: WindowState, rows: pl.DataFrame, upto: int) -> Step[WindowState]:
        if rows.height and self.windows.gaps:
            rows = keep(rows, pl.Series(self.windows.covered(times(rows))))
        return super().step(state, rows, upto)

    def _window_columns(self, inputs: pl.DataFrame) -> list[pl.Series]:
        return [pl.Series(PANE, self.windows.pane_of(times(inputs)))]

    def _next_close(self, state: WindowState, rows: pl.DataFrame) -> int:
        return min(state.next_close, self.windows.next_end(int(times(rows)[0])))

    def _closed(self, state: WindowState, upto: int) -> tuple[pl.DataFrame | None, pl.DataFrame | None]:
        accumulators = raw = None
        if state.open:
            accumulators = self._in_windows(state.open[0], state.open[0][PANE], state.upto, upto)
            if self.windows.overlap:
                by = [FIRST, END, *self.keys]
                accumulators = self.aggregation.fold_by(accumulators, by)
        if state.raw:
            rows = stack(state.raw)
            raw = self._in_windows(rows, pl.Series(self.windows.pane_of(times(rows))), state.upto, upto)
        return accumulators, raw

    def _in_windows(self, rows: pl.DataFrame, panes: pl.Series, after: int, upto: int) -> pl.DataFrame:
        """Each row once for every closing window it belongs to."""
        position, starts = self.windows.closing(panes.to_numpy(), after, upto)
        start = pl.Series(FIRST, starts)
        each_once = len(position) == rows.height and not self.windows.overlap
        closing = rows if each_once else take(rows, position)
        return closing.with_columns(start, (start + self.windows.size_us).alias(END))

    def _kept(self, state: WindowState, upto: int) -> WindowState:
        open_ = _non_empty([self._open_part(rows, rows[PANE].to_numpy(), upto) for rows in state.open])
        raw = _non_empty([self._open_part(rows, self.windows.pane_of(times(rows)), upto) for rows in state.raw])
        stamps = [rows[PANE].to_numpy() for rows in open_] + [times(rows) for rows in raw]
        soonest = self.windows.next_end(upto)
        ends = [max(self.windows.next_end(int(stamp.min())), soonest) for stamp in stamps]
        return WindowState(open_, (), raw, upto, min(ends, default=FINAL))

    def _open_part(self, rows: pl.DataFrame, panes: Times, upto: int) -> pl.DataFrame:
        still = self.windows.last_end(panes) > upto
        return rows if still.all() else keep(rows, pl.Series(still))

    def _boundary(self, state: WindowState) -> int:
        return self.windows.next_end(state.upto)


class UntilAggregate(PaneAggregate):
    """A window for each key and each time in a column; it closes at that time.

    A row whose own time has reached the time in its column comes after its window's end and belongs to none.

    >>> import evenflow as ef
    >>> net = ef.Network("doc")
    >>> bids = net.source("bids", {"lot": pl.Int64, "price": pl.Int64, "closes": pl.Int64})
    >>> _ = bids.window(until="closes", by="lot").agg(best=ef.max("price")).output("sold")
    >>> rows = pl.DataFrame({"tuple_time": [1, 2], "lot": [7, 7], "price": [3, 5], "closes": [9, 9]})
    >>> ef.fold(net, {"bids": rows})["sold"].select("tuple_time", "window_start", "lot", "best").rows()
    [(9, 1, 7, 5)]
    """

    def __init__(self, column: str, aggregation: Aggregation, output: Schema) -> None:
        super().__init__(aggregation, output)
        self.column = column

    def __repr__(self) -> str:
        return f"window(until={self.column!r}, by={list(self.keys)})"

    def schema(self, inputs: Schema) -> Schema:
        if inputs[self.column] != pl.Int64:
            raise DeclarationError(
                f"window(until={self.column!r}): the column holds {inputs[self.column]}; "
                f"it must be Int64, the closing time in microseconds"
            )
        return super().schema(inputs)

    def step(self, state: WindowState, rows: pl.DataFrame, upto: int) -> Step[WindowState]:
        if rows.height:
            in_time = (rows[self.column] > rows[TUPLE_TIME]).fill_null(False)
            rows = rows if in_time.all() else keep(rows, in_time)
        return super().step(state, rows, upto)

    def _window_columns(self, inputs: pl.DataFrame) -> list[pl.Series]:
        return [inputs[self.column].alias(PANE), inputs[TUPLE_TIME].alias(FIRST)]

    def _next_close(self, state: WindowState, rows: pl.DataFrame) -> int:
        return min(state.next_close, int(rows[self.column].to_numpy().min()))

    def _closed(self, state: WindowState, upto: int) -> tuple[pl.DataFrame | None, pl.DataFrame | None]:
        accumulators = raw = None
        if state.open:
            closed = keep(state.open[0], state.open[0][PANE] <= upto)
            accumulators = closed.rename({PANE: END})
        if state.raw:
            rows = stack(state.raw)
            closed = keep(rows, rows[self.column] <= upto)
            first = pl.col(TUPLE_TIME).first().over([self.column, *self.keys]).alias(FIRST)
            raw = closed.with_columns(first, pl.col(self.column).alias(END))
        return accumulators, raw

    def _kept(self, state: WindowState, upto: int) -> WindowState:
        open_ = _non_empty([keep(rows, rows[PANE] > upto) for rows in state.open])
        raw = _non_empty([keep(rows, rows[self.column] > upto) for rows in state.raw])
        ends = [int(rows[PANE].to_numpy().min()) for rows in open_]
        ends += [int(rows[self.column].to_numpy().min()) for rows in raw]
        return WindowState(open_, (), raw, upto, min(ends, default=FINAL))

    def _boundary(self, state: WindowState) -> int:
        return min(state.next_close, later(state.upto, 1))


def window_rows(
    heads: pl.DataFrame, aggregation: Aggregation, columns: Sequence[pl.Series], empty: pl.DataFrame
) -> pl.DataFrame:
    """Closed windows as rows: time, window, keys, then the aggregates in the order and types declared."""
    end = heads[END]
    head = [end.alias(TUPLE_TIME), heads[FIRST].alias(WINDOW_START), end.alias(WINDOW_END)]
    out = pl.DataFrame([*head, *(heads[key] for key in aggregation.keys), *aggregation.ordered(columns)])
    return out if out.schema == empty.schema else out.cast(empty.schema)


def _non_empty(frames: Sequence[pl.DataFrame]) -> Segments:
    return tuple(frame for frame in frames if frame.height)
