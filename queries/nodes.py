"""One vertex of a declared network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from evenflow.operators.operator import HeadOperator, Operator
from evenflow.queries.source import Source


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A stream: its number, its name, and what makes it — a source or an operator over other streams."""

    number: int
    name: str
    operator: Operator[Any] | HeadOperator[Any] | None
    inputs: tuple[int, ...]
    schema: Mapping[str, pl.DataType]
    source: Source | None
