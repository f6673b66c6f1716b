"""WithColumns: add columns or replace them, row by row."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from evenflow.operators.expressions import result_types
from evenflow.operators.kernel import evaluate
from evenflow.operators.operator import Gives, NoState, Operator, Schema, Step


class WithColumns(Operator[NoState]):
    """Adds a column for each named expression; a name that exists is replaced in its place.

    >>> double = WithColumns({"b": pl.col("a") * 2})
    >>> double.schema({"a": pl.Int64})
    {'a': Int64, 'b': Int64}
    >>> double.step(NoState(), pl.DataFrame({"tuple_time": [1], "a": [4]}), upto=5).rows.rows()
    [(1, 4, 8)]
    """

    by_row = True
    gives = Gives.EACH

    def __init__(self, columns: Mapping[str, pl.Expr]) -> None:
        self.columns = dict(columns)

    def __repr__(self) -> str:
        return f"with_columns({', '.join(self.columns)})"

    def origin(self, column: str) -> str | None:
        return None if column in self.columns else column

    def schema(self, inputs: Schema) -> Schema:
        added = result_types("with_columns", inputs, self.columns)
        self._added = added
        return {**inputs, **added}

    def step(self, state: NoState, rows: pl.DataFrame, upto: int) -> Step[NoState]:
        columns = {column.name: column for column in rows}
        for name, dtype in self._added.items():
            made = evaluate(rows, self.columns[name], name) if rows.height else pl.Series(name, [], dtype=dtype)
            columns[name] = made
        return Step(state, pl.DataFrame(list(columns.values())), upto)
