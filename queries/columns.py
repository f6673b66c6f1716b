"""Columns as users name them, checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from evenflow.operators.errors import DeclarationError, nearest
from evenflow.operators.items import HEADER
from evenflow.operators.operator import Schema
from evenflow.operators.top import Ranking

Columns = str | pl.Expr | Iterable[str | pl.Expr]


def as_list(columns: Columns) -> list[str | pl.Expr]:
    return [columns] if isinstance(columns, str | pl.Expr) else list(columns)


def checked_columns(operator: str, schema: Schema, columns: Columns, argument: str) -> tuple[str, ...]:
    """Names of columns that exist and can be keys."""
    if not isinstance(columns, str | pl.Expr | Iterable):
        raise DeclarationError(f"{operator}: {argument}={columns!r} is not a column's name or a list of them")
    names = tuple(_column_name(operator, column, argument) for column in as_list(columns))
    for name in names:
        if name not in schema:
            raise DeclarationError(f"{operator}: {argument}={name!r} is not a column; {nearest(name, schema)}")
        dtype = pl.Schema({name: schema[name]})[name]
        if dtype.is_nested() or dtype in (pl.Categorical, pl.Object, pl.Null):
            raise DeclarationError(
                f"{operator}: {argument}={name!r} is {dtype}, which cannot be a key; make a plain column of it first"
            )
    if len(set(names)) != len(names):
        raise DeclarationError(f"{operator}: {argument} names a column twice: {list(names)}")
    return names


def _column_name(operator: str, column: object, argument: str) -> str:
    """A column by its name; ``pl.col("name")`` is as good."""
    if isinstance(column, pl.Expr) and column.meta.is_column():
        return column.meta.output_name()
    if not isinstance(column, str):
        raise DeclarationError(
            f"{operator}: {argument}={column} is not a column's name; make the column first, with with_columns(...)"
        )
    return column


def named_expressions(operator: str, positional: Sequence[Any], named: Mapping[str, Any]) -> dict[str, pl.Expr]:
    """Expressions by the name of the column they make."""
    columns: dict[str, pl.Expr] = {}
    for item in positional:
        expression = pl.col(item) if isinstance(item, str) else item
        if not isinstance(expression, pl.Expr):
            raise DeclarationError(f"{operator}: {item!r} is neither a column nor an expression")
        if expression.meta.has_multiple_outputs():
            raise DeclarationError(f"{operator}: {expression} makes several columns; name each one")
        _put(operator, columns, expression.meta.output_name(), expression)
    for name, value in named.items():
        expression = value if isinstance(value, pl.Expr) else pl.col(value) if isinstance(value, str) else pl.lit(value)
        _put(operator, columns, name, expression)
    if not columns:
        raise DeclarationError(f"{operator}: name at least one column")
    return columns


def _put(operator: str, columns: dict[str, pl.Expr], name: str, expression: pl.Expr) -> None:
    if name in columns:
        raise DeclarationError(f"{operator}: column {name!r} is made twice")
    if name in HEADER:
        raise DeclarationError(f"{operator}: {name!r} belongs to the row's header and cannot be set")
    columns[name] = expression


def ranking(operator: str, schema: Schema, k: int, by: str, per: Columns, ties: bool, ascending: bool) -> Ranking:
    """A checked ranking for ``top``."""
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise DeclarationError(f"{operator}: k={k!r} must be a whole number from 1 on")
    (by,) = checked_columns(operator, schema, [by], "by")
    return Ranking(k, by, checked_columns(operator, schema, per, "per"), ties, ascending)
