"""WithColumns: add columns or replace them, row by row."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from evenflow.operators.expressions import result_types
from evenflow.operators.kernel import at_least_two
from evenflow.operators.operator import NoState, Operator, Schema, Step


class WithColumns(Operator[NoState]):
    """Adds a column for each named expression; a name that exists is replaced in its place.

    >>> step = WithColumns({"b": pl.col("a") * 2}).step(NoState(), pl.DataFrame({"tuple_time": [1], "a": [4]}), upto=5)
    >>> step.rows.rows()
    [(1, 4, 8)]
    """

    def __init__(self, columns: Mapping[str, pl.Expr]) -> None:
        self.columns = dict(columns)
        self._expressions = [expression.alias(name) for name, expression in self.columns.items()]

    def __repr__(self) -> str:
        return f"with_columns({', '.join(self.columns)})"

    def schema(self, inputs: Schema) -> Schema:
        added = result_types("with_columns", inputs, self.columns)
        self._added = list(added.items())
        return {**inputs, **added}

    def step(self, state: NoState, rows: pl.DataFrame, upto: int) -> Step[NoState]:
        if not rows.height:
            blank = [pl.Series(name, [], dtype=dtype) for name, dtype in self._added]
            return Step(state, rows.with_columns(blank), upto)
        return Step(state, at_least_two(rows).with_columns(self._expressions).head(rows.height), upto)
