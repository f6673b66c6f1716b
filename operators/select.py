"""Select: the columns that go on, as expressions over each row."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from evenflow.operators.errors import DeclarationError
from evenflow.operators.expressions import result_types
from evenflow.operators.items import TUPLE_TIME
from evenflow.operators.kernel import evaluate
from evenflow.operators.operator import Gives, NoState, Operator, Schema, Step


class Select(Operator[NoState]):
    """Only the named expressions go on (``tuple_time`` always does).

    >>> rows = pl.DataFrame({"tuple_time": [1], "a": [4], "b": [0]})
    >>> step = Select({"twice": pl.col("a") * 2})
    >>> step.schema({"a": pl.Int64, "b": pl.Int64})
    {'twice': Int64}
    >>> step.step(NoState(), rows, upto=5).rows.rows()
    [(1, 8)]
    """

    by_row = True
    gives = Gives.EACH

    def __init__(self, columns: Mapping[str, pl.Expr]) -> None:
        if not columns:
            raise DeclarationError("select: name at least one column to keep")
        self.columns = dict(columns)
        plain = [e.meta.output_name() for name, e in self.columns.items() if e.meta.is_column()]
        self._plain = [TUPLE_TIME, *plain] if plain == list(self.columns) else None

    def __repr__(self) -> str:
        return f"select({', '.join(self.columns)})"

    def origin(self, column: str) -> str | None:
        made = self.columns.get(column)
        return made.meta.output_name() if made is not None and made.meta.is_column() else None

    def schema(self, inputs: Schema) -> Schema:
        output = result_types("select", inputs, self.columns)
        self._empty = pl.DataFrame(schema={TUPLE_TIME: pl.Int64, **output})
        return output

    def step(self, state: NoState, rows: pl.DataFrame, upto: int) -> Step[NoState]:
        if not rows.height:
            return Step(state, self._empty, upto)
        if self._plain:
            return Step(state, rows[self._plain], upto)
        columns = [evaluate(rows, expression, name) for name, expression in self.columns.items()]
        return Step(state, pl.DataFrame([rows[TUPLE_TIME], *columns]), upto)
