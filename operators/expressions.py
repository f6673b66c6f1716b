"""Checks on Polars expressions, made when a network is declared."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import polars as pl
import polars.exceptions as pex

from evenflow.operators.errors import DeclarationError, nearest
from evenflow.operators.items import TUPLE_TIME
from evenflow.operators.operator import Schema

_ACROSS_ROWS = {"Agg", "Explode", "Filter", "Gather", "Len", "Over", "Rolling", "Slice", "Sort", "SortBy"}
_ACROSS_ROWS |= {"DropNans", "DropNulls"}
"""Nodes of an expression that look at more than one row or change how many there are."""


_DIVISIONS = {"TrueDivide", "FloorDivide", "Modulus", "Divide"}
_RANDOM = re.compile(r'"(Random|Sample|SampleN|SampleFrac|Shuffle)\w*"')


def plain_text(expression: pl.Expr) -> str:
    """An expression for people: without the notes that Polars makes about literals.

    >>> plain_text(pl.col("n") > 3)
    '(col("n")) > 3'
    """
    text = re.sub(r"\(?dyn (?:int|float): ([-\d.e]+)\)?", r"\1", str(expression))
    return text[1:-1] if text.startswith("[") and text.endswith("]") else text


def check_columns(operator: str, columns: Mapping[str, Any], schema: Schema) -> None:
    """Raise if an expression reads a column that there is not."""
    known = [TUPLE_TIME, *schema]
    for expression in columns.values():
        for name in expression.meta.root_names():
            if name not in known:
                raise DeclarationError(f"{operator}: there is no column {name!r}; {nearest(name, known)}")


def check_row_by_row(operator: str, expression: pl.Expr) -> None:
    """Raise unless each result depends on its own row alone: else the answer would vary with how input is cut."""
    try:
        tree = json.loads(expression.meta.serialize(format="json"))
    except (pex.ComputeError, ValueError) as error:
        raise DeclarationError(
            f"{operator}: {expression} holds a Python function; use map_rows() or map_batches() for it"
        ) from error
    _check_repeatable(operator, expression)
    if _divides_a_choice(tree):
        raise DeclarationError(
            f"{operator}: {expression} divides a choice between constants by a constant, which Polars computes in two "
            f"ways that differ in the last bit; make the choice in a with_columns(...) of its own and divide after it"
        )
    if not _is_row_by_row(expression):
        raise DeclarationError(
            f"{operator}: {expression} is not computed row by row, so its result would depend on how the input is cut "
            f"into batches; use window(...).agg(...) or running(...).agg(...) for what spans rows"
        )


def _is_row_by_row(expression: pl.Expr) -> bool:
    """Whether every node of an expression looks at its own row alone. (Polars' own answer is about the top one.)"""
    kind = _kind(expression)
    parts = expression.meta.pop()
    if kind == "Eval":  # within one list value anything goes; only the list itself must be its row's
        return _is_row_by_row(parts[-1])
    if kind in _ACROSS_ROWS:
        return False
    try:
        alone = expression.meta.is_row_separable()
    except pex.PolarsError:  # it cannot say of expressions over list values; their parts are asked
        alone = True
    return alone and all(map(_is_row_by_row, parts))


def _kind(expression: pl.Expr) -> str:
    tree = json.loads(expression.meta.serialize(format="json"))
    if isinstance(tree, str):
        return tree
    kind, content = next(iter(tree.items()))
    function = content.get("function") if kind == "Function" else None
    return function if isinstance(function, str) else str(kind)


def _divides_a_choice(tree: Any) -> bool:
    """Whether a choice between constants is divided by a constant, or its remainder taken.

    If all rows choose alike, Polars keeps the choice as one value, and divides one value in another way than a
    column (see ``kernel.at_least_two``): the last bit would depend on the other rows of the batch.
    """
    if isinstance(tree, list):
        return any(map(_divides_a_choice, tree))
    if not isinstance(tree, dict):
        return False
    binary = tree.get("BinaryExpr")
    by_constant = isinstance(binary, dict) and binary["op"] in _DIVISIONS and not _reads_columns(binary["right"])
    if by_constant and any(map(_chooses_constants, _subtrees(tree["BinaryExpr"]["left"]))):
        return True
    return any(map(_divides_a_choice, tree.values()))


def _chooses_constants(tree: Any) -> bool:
    choice = tree.get("Ternary") if isinstance(tree, dict) else None
    return choice is not None and not (_reads_columns(choice["truthy"]) and _reads_columns(choice["falsy"]))


def _reads_columns(tree: Any) -> bool:
    return any(isinstance(node, dict) and "Column" in node for node in _subtrees(tree))


def _subtrees(tree: Any) -> Iterator[Any]:
    yield tree
    parts = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    for part in parts:
        yield from _subtrees(part)


def check_aggregate(operator: str, expression: pl.Expr) -> None:
    """Raise if an aggregate would not give the same value each time it is asked."""
    try:
        expression.meta.serialize(format="json")
    except (pex.ComputeError, ValueError) as error:
        raise DeclarationError(
            f"{operator} = {expression} holds a Python function; write an evenflow.Aggregate for it"
        ) from error
    _check_repeatable(operator, expression)


def _check_repeatable(operator: str, expression: pl.Expr) -> None:
    text = expression.meta.serialize(format="json")
    if '"Categorical"' in text:
        raise DeclarationError(
            f"{operator}: {expression} makes a Categorical, whose codes differ between processes; use an Enum"
        )
    if _RANDOM.search(text):
        raise DeclarationError(f"{operator}: {expression} draws at random, so replicas would disagree")


def result_types(operator: str, schema: Schema, columns: Mapping[str, pl.Expr]) -> dict[str, pl.DataType]:
    """The types of row-by-row expressions over these attributes; raises where one cannot be computed."""
    check_columns(operator, columns, schema)
    for expression in columns.values():
        check_row_by_row(operator, expression)
    frame = pl.DataFrame(schema={TUPLE_TIME: pl.Int64, **schema})
    return _types(operator, columns, frame.select)


def aggregate_types(operator: str, schema: Schema, columns: Mapping[str, pl.Expr]) -> dict[str, pl.DataType]:
    """The types of aggregate expressions, one value a group; Polars' own counts (UInt32) become Int64."""
    check_columns(operator, columns, schema)
    frame = pl.DataFrame(schema={TUPLE_TIME: pl.Int64, **schema, ":group": pl.Int64})
    types = _types(operator, columns, frame.group_by(":group").agg)
    ungrouped = _types(operator, columns, frame.lazy().select)
    for name, expression in columns.items():
        if types[name] == pl.List(ungrouped[name]):
            raise DeclarationError(
                f"{operator} = {expression} gives many values for a window; say which: ef.last(...), .sum(), …"
            )
        roots = [schema[root] for root in expression.meta.root_names() if root in schema]
        if types[name] == pl.UInt32 and pl.UInt32 not in roots:
            types[name] = pl.Int64()
    return types


def _types(operator: str, columns: Mapping[str, pl.Expr], compute: Callable[..., Any]) -> dict[str, pl.DataType]:
    """The types that come out when each expression is computed over no rows at all."""
    types: dict[str, pl.DataType] = {}
    for name, expression in columns.items():
        try:
            types[name] = compute(expression.alias(name)).collect_schema()[name]
        except pex.PolarsError as error:
            reason = str(error).splitlines()[0]
            raise DeclarationError(f"{operator}: {name} = {expression} cannot be computed: {reason}") from error
        check_type(f"{operator}: {name}", types[name])
    return types


def check_type(what: str, dtype: pl.DataType) -> None:
    """Raise for types whose values are not the same in every process."""
    if dtype == pl.Categorical:
        raise DeclarationError(f"{what} is Categorical, whose codes differ between processes; use String or an Enum")
    if dtype == pl.Object:
        raise DeclarationError(f"{what} holds Python objects, which cannot travel; use a Polars type")
