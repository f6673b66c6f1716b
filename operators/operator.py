"""The operator protocol: a pure fold over ordered rows and passing time.

``step(state, rows, upto)`` folds rows that are ordered by ``tuple_time`` and all lie below ``upto``, then lets time
pass to ``upto``. It gives the new state, one ordered output, and the output's *boundary*: the smallest
``tuple_time`` still to come. Every row it gives lies below that boundary, so rows of equal time always come in one
step. Where the input is cut into steps must not matter, to the bit.

A user's own operator is a subclass:

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True)
... class Seen:
...     n: int = 0
>>> class Numbered(Operator[Seen]):
...     '''Adds each row's number in the stream.'''
...     state_type = Seen
...     def schema(self, inputs):
...         return {**inputs, "n": pl.Int64}
...     def step(self, state, rows, upto):
...         numbers = pl.int_range(state.n, state.n + rows.height, eager=True).alias("n")
...         return Step(Seen(state.n + rows.height), rows.with_columns(numbers), upto)
>>> out = Numbered().step(Seen(5), pl.DataFrame({"tuple_time": [1, 2]}), upto=10)
>>> out.rows["n"].to_list(), out.state
([5, 6], Seen(n=7))
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import polars as pl

from evenflow.operators.errors import InvariantError, OperatorError
from evenflow.operators.items import TUPLE_TIME
from evenflow.operators.kernel import is_sorted, stack, times
from evenflow.operators.keys import KeyRange, key_hash
from evenflow.operators.packing import Packed, Scalar, pack_state, scalars_of, tables_of, unpack_state
from evenflow.operators.times import FINAL

S = TypeVar("S")
ROW = ":row"
"""A column that an operator which gives *some* of its rows lets through, so that they can be told."""
Schema = Mapping[str, pl.DataType | type[pl.DataType]]


class Gives(Enum):
    """How the rows that come out stand to those that went in."""

    EACH = "one for each row, in order"
    SOME = "some of the rows, in order, with their column ROW if they have one"
    GROUPS = "rows by time, then by the keys"
    PAIRS = "rows by time, then by the later row's place"


class Step(NamedTuple, Generic[S]):
    """What one step gives: the new state, ordered rows, and the smallest ``tuple_time`` still to come."""

    state: S
    rows: pl.DataFrame
    boundary: int


@dataclass(frozen=True, slots=True)
class NoState:
    """The state of an operator that has none."""


class Portable(ABC, Generic[S]):
    """What every operator can do with its state besides folding: hand it over, whole, in part or as a delta."""

    state_type: ClassVar[type[Any]] = NoState
    keys: tuple[str, ...] = ()
    """The columns that partition the work; empty: the operator is one piece."""
    by_row: ClassVar[bool] = False
    """Whether each row is looked at by itself: the work can be cut anywhere, by key, by time or otherwise."""
    gives: ClassVar[Gives | None] = None
    """In which order rows come out, so that the outputs of partitions can be merged; None: nobody but it knows."""

    def initial(self) -> S:
        state: S = self.state_type()
        return state

    @property
    def horizon(self) -> int | None:
        """How much input, in microseconds, rebuilds the state; None: only a transfer or a checkpoint can."""
        return 0 if self.state_type is NoState else None

    def origin(self, column: str) -> str | None:
        """The input column that comes out unchanged under this name; None: there is none, or nobody knows."""
        return column if column in self.keys else None

    @property
    def blocking(self) -> bool:
        """Whether nothing can come out while an input is missing."""
        return False

    def settle(self, state: S) -> S:
        """The same state in its canonical form: equal however the input was cut into steps."""
        return state

    def pack(self, state: S, key_range: KeyRange | None = None, since: S | None = None) -> Packed:
        """The state as a portable value: of a key range only, or as a delta since an older state."""
        if key_range is None:
            return pack_state(state, None, since)

        def select(table: str, rows: pl.DataFrame) -> pl.DataFrame:
            keys = self.table_keys(table)
            return rows if keys is None else rows.filter(pl.Series(key_range.select(key_hash(rows, keys))))

        return pack_state(state, select, since)

    def table_keys(self, table: str) -> tuple[str, ...] | None:
        """The key columns as they are called in one table of the state; None: its rows go with every key range."""
        return self.keys

    def unpack(self, packed: Packed, base: S | None = None) -> S:
        state: S = unpack_state(self.state_type, packed, base)
        return state

    def merge(self, states: Sequence[S]) -> S:
        """One state out of those of disjoint key ranges that have folded up to the same time."""
        settled = [self.settle(state) for state in states]
        scalars = self.merge_scalars([scalars_of(state) for state in settled])
        parts = [tables_of(state) for state in settled]
        tables = {name: tuple(_stacked([segment for part in parts for segment in part[name]])) for name in parts[0]}
        return self.settle(self.state_type(**scalars, **tables))

    def merge_scalars(self, scalars: Sequence[Mapping[str, Scalar]]) -> Mapping[str, Scalar]:
        """The merged state's scalars: those of every part, which must agree unless an operator knows better."""
        if any(part != scalars[0] for part in scalars[1:]):
            raise InvariantError(f"{type(self).__name__}: the states to merge have not folded up to the same time")
        return scalars[0]


def _stacked(segments: Sequence[pl.DataFrame]) -> list[pl.DataFrame]:
    return [stack(segments)] if segments else []


class Operator(Portable[S]):
    """An operator with one ordered input."""

    @abstractmethod
    def schema(self, inputs: Schema) -> Schema:
        """The attributes that come out, given those that go in. Mistakes are reported here."""

    @abstractmethod
    def step(self, state: S, rows: pl.DataFrame, upto: int) -> Step[S]: ...


class HeadOperator(Portable[S]):
    """An operator with several inputs: it stands directly behind an SUnion, which gives it whole buckets."""

    @abstractmethod
    def schema(self, *inputs: Schema) -> Schema: ...

    @abstractmethod
    def step(self, state: S, rows: Sequence[pl.DataFrame], upto: int) -> Step[S]: ...


def checked_step(operator: Portable[Any], result: Any, promised: Schema, upto: int) -> Step[Any]:
    """A step of a user's own operator, or an error that says what is wrong with it."""
    name = type(operator).__name__
    if not isinstance(result, tuple) or len(result) != len(Step._fields):
        raise OperatorError(f"{name}.step() gave {type(result).__name__}; it must give Step(state, rows, boundary)")
    step: Step[Any] = Step(*result)
    schema = pl.Schema({TUPLE_TIME: pl.Int64, **promised})
    if not isinstance(step.rows, pl.DataFrame) or step.rows.schema != schema:
        got = step.rows.schema if isinstance(step.rows, pl.DataFrame) else type(step.rows).__name__
        raise OperatorError(f"{name}.step() gave rows of {got}; its schema() promised {schema}")
    stamps = times(step.rows)
    if not is_sorted(stamps):
        raise OperatorError(f"{name}.step() gave rows that are not ordered by tuple_time")
    if len(stamps) and stamps[-1] >= step.boundary:
        raise OperatorError(f"{name}.step() gave a row at {stamps[-1]}, not below its boundary {step.boundary}")
    if upto == FINAL and step.boundary != FINAL:
        raise OperatorError(
            f"{name}.step() must give the boundary it got once the input has ended, not {step.boundary}"
        )
    return step
