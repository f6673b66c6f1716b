"""Top: the best rows of each window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import polars as pl

from evenflow.operators.items import TUPLE_TIME
from evenflow.operators.kernel import keep
from evenflow.operators.operator import Gives, NoState, Operator, Schema, Step


@dataclass(frozen=True, slots=True)
class Ranking:
    """The ``k`` best by a column, for each value of the ``per`` columns; ties with the last are kept or left out."""

    k: int
    by: str
    per: tuple[str, ...] = ()
    ties: bool = False
    ascending: bool = False

    def __str__(self) -> str:
        per = f", per={list(self.per)}" if self.per else ""
        return f"{self.k}, by={self.by!r}{per}{', ties=True' if self.ties else ''}"

    def best(self, rows: pl.DataFrame, group: tuple[str, ...]) -> pl.DataFrame:
        """The best rows of each group, best first. Nulls and NaN never rank; of equals the earlier row is better."""
        value = pl.col(self.by).fill_nan(None) if rows.schema[self.by].is_float() else pl.col(self.by)
        keys = [*group, *self.per]
        ordered = rows.sort(
            [*keys, value],
            descending=[*(False for _ in keys), not self.ascending],
            nulls_last=[*(False for _ in keys), True],
            maintain_order=True,
        )
        method: Literal["min", "ordinal"] = "min" if self.ties else "ordinal"
        rank = value.rank(method, descending=not self.ascending).over(keys)
        return keep(ordered, (ordered.select(rank).to_series() <= self.k).fill_null(False))


class Top(Operator[NoState]):
    """The ``k`` best rows of those with one ``tuple_time``: behind a windowed aggregate, of one window.

    All rows of one time come in one step, so there is nothing to remember.

    >>> rows = pl.DataFrame({"tuple_time": [9, 9, 9], "host": ["a", "b", "c"], "n": [3, 5, 5]})
    >>> Top(Ranking(1, "n", ties=True)).step(NoState(), rows, upto=10).rows["host"].to_list()
    ['b', 'c']
    >>> Top(Ranking(1, "n")).step(NoState(), rows, upto=10).rows["host"].to_list()
    ['b']
    """

    gives = Gives.GROUPS

    def __init__(self, ranking: Ranking) -> None:
        self.ranking = ranking
        self.keys = ranking.per

    def __repr__(self) -> str:
        return f"top({self.ranking})"

    def origin(self, column: str) -> str | None:
        return column

    def schema(self, inputs: Schema) -> Schema:
        return inputs

    def step(self, state: NoState, rows: pl.DataFrame, upto: int) -> Step[NoState]:
        return Step(state, self.ranking.best(rows, (TUPLE_TIME,)) if rows.height else rows, upto)
