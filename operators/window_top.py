"""The best rows of each window, as they came in."""

from __future__ import annotations

import polars as pl

from evenflow.operators.items import TUPLE_TIME
from evenflow.operators.operator import Schema
from evenflow.operators.panes import TimeWindows
from evenflow.operators.sums import Aggregation
from evenflow.operators.top import Ranking
from evenflow.operators.window import (
    END,
    FIRST,
    WINDOW_END,
    WINDOW_START,
    PaneAggregate,
    UntilAggregate,
    WindowAggregate,
)

_NOTHING = Aggregation((), {}, {}, ())


class _Ranked(PaneAggregate):
    """Keeps the rows themselves, and ranks those of a window when it closes."""

    ranking: Ranking
    keeps_rows = True

    def _raw(self, rows: pl.DataFrame) -> pl.DataFrame:
        return rows

    def _emit(self, accumulators: pl.DataFrame | None, raw: pl.DataFrame | None) -> pl.DataFrame:
        if raw is None or not raw.height:
            return self._empty
        by_end = raw.sort(END, maintain_order=True)
        best = self.ranking.best(by_end, (END,))
        window = [pl.col(FIRST).alias(WINDOW_START), pl.col(END).alias(WINDOW_END), pl.col(END).alias(TUPLE_TIME)]
        return best.with_columns(window)[self._empty.columns]


class WindowTop(_Ranked, WindowAggregate):
    """The best rows of each tumbling or sliding window.

    >>> import evenflow as ef
    >>> net = ef.Network("doc")
    >>> bids = net.source("bids", {"who": pl.String, "price": pl.Int64})
    >>> _ = bids.window("10us").top(1, by="price").output("best")
    >>> rows = pl.DataFrame({"tuple_time": [1, 2, 12], "who": ["a", "b", "c"], "price": [5, 7, 1]})
    >>> ef.fold(net, {"bids": rows})["best"].select("window_end", "who").rows()
    [(10, 'b'), (20, 'c')]
    """

    def __init__(self, windows: TimeWindows, ranking: Ranking, output: Schema) -> None:
        super().__init__(windows, _NOTHING, output)
        self.ranking = ranking
        self.keys = ranking.per

    def __repr__(self) -> str:
        return f"window({self.windows}).top({self.ranking})"


class UntilTop(_Ranked, UntilAggregate):
    """The best rows of each window that closes at the time in a column."""

    def __init__(self, column: str, ranking: Ranking, output: Schema) -> None:
        super().__init__(column, _NOTHING, output)
        self.ranking = ranking
        self.keys = ranking.per

    def __repr__(self) -> str:
        return f"window(until={self.column!r}).top({self.ranking})"
