"""A user's own functions over a batch of rows or over single rows."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from evenflow.operators.errors import EvenflowError, NotDeterministicError, OperatorError
from evenflow.operators.items import TUPLE_TIME
from evenflow.operators.kernel import at_least_two, stack
from evenflow.operators.operator import Gives, NoState, Operator, Schema, Step

BatchFunction = Callable[[pl.DataFrame], pl.DataFrame]
RowFunction = Callable[[dict[str, Any]], Mapping[str, Any]]


def where(function: Callable[..., Any]) -> str:
    """A function's name and where it stands, for messages."""
    name = getattr(function, "__qualname__", repr(function))
    try:
        line = inspect.getsourcelines(function)[1]
        file = inspect.getsourcefile(function)
    except (OSError, TypeError):
        return f"{name}()"
    return f"{name}() ({file}:{line})"


@dataclass(frozen=True, slots=True)
class Checked:
    """How many batches of several rows went through: now and then one is run again, cut in two."""

    batches: int = 0


class MapBatches(Operator[Checked]):
    """``function`` gets a frame of the attributes and gives one of as many rows, row for row.

    Since it sees whole batches, it could make a result depend on how the input is cut, and then replicas and redo
    would disagree. So the 1st, 2nd, 4th, 8th … batch is run again in two parts, and a difference is refused.

    >>> double = MapBatches(lambda frame: frame.select(pl.col("a") * 2))
    >>> double.schema({"a": pl.Int64})
    {'a': Int64}
    >>> double.step(Checked(), pl.DataFrame({"tuple_time": [1, 2], "a": [4, 5]}), upto=5).rows.rows()
    [(1, 8), (2, 10)]
    """

    state_type = Checked
    by_row = True
    gives = Gives.EACH

    def __init__(self, function: BatchFunction, schema: Schema | None = None) -> None:
        self.function = function
        self.given = schema

    def __repr__(self) -> str:
        return f"map_batches({getattr(self.function, '__name__', self.function)})"

    @property
    def horizon(self) -> int | None:
        return 0

    def schema(self, inputs: Schema) -> Schema:
        self._output = dict(pl.Schema(dict(self.given if self.given is not None else inputs)))
        return self._output

    def settle(self, state: Checked) -> Checked:
        return Checked()

    def step(self, state: Checked, rows: pl.DataFrame, upto: int) -> Step[Checked]:
        if not rows.height:
            return Step(state, pl.DataFrame(schema={TUPLE_TIME: pl.Int64, **self._output}), upto)
        out = self._apply(rows)
        batches = state.batches + (rows.height > 1)
        if rows.height > 1 and batches & (batches - 1) == 0:
            self._check(rows, out)
        return Step(Checked(batches), out, upto)

    def _apply(self, rows: pl.DataFrame) -> pl.DataFrame:
        wide = at_least_two(rows)
        try:
            out = self.function(wide.drop(TUPLE_TIME))
        except EvenflowError:
            raise
        except Exception as error:
            raise OperatorError(f"map_batches: {where(self.function)} raised {error!r}") from error
        if not isinstance(out, pl.DataFrame) or out.height != wide.height:
            got = f"{out.height} rows" if isinstance(out, pl.DataFrame) else type(out).__name__
            raise OperatorError(
                f"map_batches: {where(self.function)} got {wide.height} rows and gave {got}; "
                f"it must give a frame with one row for each"
            )
        return _fit("map_batches", self.function, rows, out.head(rows.height), self._output)

    def _check(self, rows: pl.DataFrame, out: pl.DataFrame) -> None:
        half = rows.height // 2
        in_parts = stack([self._apply(rows.slice(0, half)), self._apply(rows.slice(half))])
        if not in_parts.equals(out):
            raise NotDeterministicError(
                f"map_batches: {where(self.function)} gave other rows when a batch of {rows.height} was cut in two; "
                f"each row must depend on itself alone, or replicas would disagree. "
                f"Use window(...) or running(...) for what spans rows"
            )


class MapRows(Operator[NoState]):
    """``function`` gets and gives a dict of the attributes, row by row in Python.

    >>> shout = MapRows(lambda row: {"name": row["name"].upper()})
    >>> shout.schema({"name": pl.String})
    {'name': String}
    >>> shout.step(NoState(), pl.DataFrame({"tuple_time": [1], "name": ["ann"]}), upto=5).rows.rows()
    [(1, 'ANN')]
    """

    by_row = True
    gives = Gives.EACH

    def __init__(self, function: RowFunction, schema: Schema | None = None) -> None:
        self.function = function
        self.given = schema

    def __repr__(self) -> str:
        return f"map_rows({getattr(self.function, '__name__', self.function)})"

    def schema(self, inputs: Schema) -> Schema:
        self._output = dict(pl.Schema(dict(self.given if self.given is not None else inputs)))
        return self._output

    def step(self, state: NoState, rows: pl.DataFrame, upto: int) -> Step[NoState]:
        attributes = rows.drop(TUPLE_TIME)
        results = self._results(attributes)
        try:
            out = pl.DataFrame(results, schema=self._output, orient="row") if results else None
        except (pl.exceptions.PolarsError, TypeError, OverflowError) as error:
            types = ", ".join(f"{name}: {dtype}" for name, dtype in self._output.items())
            raise OperatorError(
                f"map_rows: {where(self.function)} gave values that are not {types}: {error}"
            ) from error
        if out is None:
            return Step(state, pl.DataFrame(schema={TUPLE_TIME: pl.Int64, **self._output}), upto)
        return Step(state, _fit("map_rows", self.function, rows, out, self._output), upto)

    def _results(self, attributes: pl.DataFrame) -> list[Mapping[str, Any]]:
        """What the function gives for each row. Nothing but the call and a look at the keys happens row by row."""
        function, names = self.function, self._output.keys()
        results: list[Mapping[str, Any]] = []
        try:
            for row in attributes.iter_rows(named=True):
                result = function(row)
                if not isinstance(result, Mapping) or result.keys() != names:
                    raise self._misfit(result, attributes.row(len(results), named=True))
                results.append(result)
        except OperatorError:
            raise
        except Exception as error:
            before = attributes.row(len(results), named=True)
            raise OperatorError(f"map_rows: {where(function)} raised {error!r} on the row {before}") from error
        return results

    def _misfit(self, result: Any, before: dict[str, Any]) -> OperatorError:
        """What is wrong with a result. The row is shown as it was, for the function may have changed its own."""
        if not isinstance(result, Mapping):
            return OperatorError(f"map_rows: {where(self.function)} gave {result!r} for {before}; it must give a dict")
        wrong = next(itertools.chain(result.keys() - self._output.keys(), self._output.keys() - result.keys()))
        fault = "left out" if wrong in self._output else "added"
        return OperatorError(
            f"map_rows: {where(self.function)} {fault} the column {wrong!r}; "
            f"say map_rows(fn, schema={{...}}) if the columns change"
        )


def _fit(
    operator: str, function: Callable[..., Any], rows: pl.DataFrame, out: pl.DataFrame, to: Schema
) -> pl.DataFrame:
    """The function's columns in the declared order and types, behind the rows' own times."""
    for name, dtype in to.items():
        if name not in out.columns:
            raise OperatorError(f"{operator}: {where(function)} gave no column {name!r}; it gave {out.columns}")
        if out[name].dtype != dtype:
            raise OperatorError(
                f"{operator}: {where(function)} gave {name!r} as {out[name].dtype}, but {dtype} is declared; "
                f"cast it, or say schema={{...}}"
            )
    extra = [name for name in out.columns if name not in to]
    if extra:
        raise OperatorError(f"{operator}: {where(function)} added {extra}; say schema={{...}} if the columns change")
    return pl.DataFrame([rows[TUPLE_TIME], *(out[name] for name in to)])
