"""Filter: the rows for which an expression is true."""

from __future__ import annotations

import polars as pl

from evenflow.operators.errors import DeclarationError
from evenflow.operators.expressions import plain_text, result_types
from evenflow.operators.kernel import evaluate, keep
from evenflow.operators.operator import Gives, NoState, Operator, Schema, Step


class Filter(Operator[NoState]):
    """Keeps the rows for which ``predicate`` is true; null counts as false.

    >>> step = Filter(pl.col("a") > 1).step(NoState(), pl.DataFrame({"tuple_time": [1, 2], "a": [1, 2]}), upto=5)
    >>> step.rows.rows(), step.boundary
    ([(2, 2)], 5)
    """

    by_row = True
    gives = Gives.SOME

    def __init__(self, predicate: pl.Expr) -> None:
        self.predicate = predicate

    def __repr__(self) -> str:
        return f"filter({plain_text(self.predicate)})"

    def origin(self, column: str) -> str | None:
        return column

    def schema(self, inputs: Schema) -> Schema:
        (dtype,) = result_types("filter", inputs, {"predicate": self.predicate}).values()
        if dtype != pl.Boolean:
            raise DeclarationError(f"filter: {self.predicate} gives {dtype}, not a Boolean; compare it with something")
        return inputs

    def step(self, state: NoState, rows: pl.DataFrame, upto: int) -> Step[NoState]:
        if not rows.height:
            return Step(state, rows, upto)
        mask = evaluate(rows, self.predicate)
        return Step(state, rows if mask.all(ignore_nulls=False) else keep(rows, mask), upto)
