"""Union: several streams as one, in the order that the SUnion before it gives them."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from evenflow.operators.errors import DeclarationError
from evenflow.operators.kernel import TieBreak, in_order, stack
from evenflow.operators.operator import Gives, HeadOperator, NoState, Schema, Step


class Union(HeadOperator[NoState]):
    """Rows of all inputs by ``(tuple_time, input, position)``; ``tie_break`` comes between time and input.

    >>> left, right = pl.DataFrame({"tuple_time": [1, 3]}), pl.DataFrame({"tuple_time": [2]})
    >>> Union().step(NoState(), [left, right], upto=5).rows["tuple_time"].to_list()
    [1, 2, 3]
    """

    by_row = True
    gives = Gives.SOME

    def __init__(self, tie_break: TieBreak = ()) -> None:
        self.tie_break = tie_break

    def __repr__(self) -> str:
        return "union"

    def origin(self, column: str) -> str | None:
        return column

    def schema(self, *inputs: Schema) -> Schema:
        first = inputs[0]
        for place, other in enumerate(inputs[1:], start=2):
            if list(other) != list(first):
                raise DeclarationError(
                    f"union: input 1 has the columns {list(first)} and input {place} has {list(other)}; "
                    f"bring them together with select(...)"
                )
            for name in first:
                if other[name] != first[name]:
                    raise DeclarationError(
                        f"union: column {name!r} is {first[name]} in input 1 and {other[name]} in input {place}; "
                        f"cast one of them with with_columns(...)"
                    )
        return first

    def step(self, state: NoState, rows: Sequence[pl.DataFrame], upto: int) -> Step[NoState]:
        return Step(state, in_order(stack(rows), self.tie_break), upto)
