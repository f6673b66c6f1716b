"""What one ``.agg(...)`` computes: the one place that knows how aggregation is made deterministic.

Incremental aggregates are left folds over accumulators (:mod:`evenflow.operators.aggregates`). Any other Polars
aggregate expression is evaluated once, when its window closes, over the window's rows in stream order: eagerly, in
one chunk, in ``group_by`` with ``maintain_order``, without Polars' sorted flags and with its partitioned group-by
switched off (``POLARS_NO_PARTITION``); what else was tried varies from run to run (docs/decisions).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from evenflow.operators.aggregates import Aggregate, Shared
from evenflow.operators.grouping import Codes, Groups
from evenflow.operators.items import TUPLE_TIME
from evenflow.operators.kernel import evaluate, stack, take, without_flags
from evenflow.operators.keys import canonical_floats
from evenflow.operators.lookup import UNKNOWN, lookup

PAD = ":pad"


def _is_plain(expression: pl.Expr) -> bool:
    return expression.meta.is_column()


def _grouped(known: pl.DataFrame | None, fresh: pl.DataFrame, by: Sequence[str]) -> tuple[pl.DataFrame, Codes]:
    """The known groups, then those that are new in ``fresh`` by first appearance; and the group of each fresh row."""
    if known is None or not known.height:
        groups = Groups.by([fresh[name] for name in by], fresh.height)
        return take(fresh, groups.first()), groups.codes
    codes = lookup([known[name] for name in by], [fresh[name] for name in by])
    rest = np.flatnonzero(codes == UNKNOWN)
    if not len(rest):
        return known, codes
    unknown = take(fresh, rest)
    groups = Groups.by([unknown[name] for name in by], unknown.height)
    codes[rest] = known.height + groups.codes
    return stack([known, take(unknown, groups.first())]), codes


@dataclass(frozen=True, slots=True, eq=False)
class Aggregation:
    """Aggregates by name, over rows grouped by ``keys`` and whatever window a row belongs to."""

    keys: tuple[str, ...]
    incremental: Mapping[str, Aggregate]
    closing: Mapping[str, pl.Expr]
    names: tuple[str, ...]
    extra: tuple[str, ...] = ()
    """Further columns that the window itself needs of each row."""
    plain: Mapping[str, str] = field(init=False)
    raw_columns: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        plain = {n: a.value.meta.output_name() for n, a in self.incremental.items() if _is_plain(a.value)}
        raw = dict.fromkeys((TUPLE_TIME, *self.extra, *self.keys))
        for expression in self.closing.values():
            raw |= dict.fromkeys(expression.meta.root_names())
        object.__setattr__(self, "plain", plain)
        object.__setattr__(self, "raw_columns", tuple(raw))

    def raw(self, rows: pl.DataFrame) -> pl.DataFrame:
        """What the closing expressions need of the rows."""
        return rows[list(self.raw_columns)]

    def inputs(self, rows: pl.DataFrame) -> pl.DataFrame:
        """What the incremental aggregates need of the rows: time, keys and each aggregate's value."""
        columns = {name: rows[name] for name in (TUPLE_TIME, *self.extra)}
        columns |= {name: self._key(rows[name]) for name in self.keys}
        for name, aggregate in self.incremental.items():
            if name in self.plain:
                columns.setdefault(self.plain[name], rows[self.plain[name]])
            else:
                columns[f":{name}"] = evaluate(rows, aggregate.value, f":{name}")
        return pl.DataFrame(list(columns.values()))

    def _key(self, column: pl.Series) -> pl.Series:
        return canonical_floats(column).cast(column.dtype) if column.dtype.is_float() else column

    def lift(self, inputs: pl.DataFrame, window: Sequence[pl.Series]) -> pl.DataFrame:
        """The rows' own accumulators, behind the window columns and the keys."""
        fields = [
            lifted.alias(column)
            for name, aggregate in self.incremental.items()
            for column, lifted in zip(
                self.fields(name), aggregate.lift(inputs[self.plain.get(name, f":{name}")]), strict=True
            )
        ]
        return pl.DataFrame([*window, *(inputs[key] for key in self.keys), *fields])

    def fields(self, name: str) -> list[str]:
        """The names of an aggregate's accumulator columns."""
        return [f":{name}:{field}" for field in self.incremental[name].fields]

    def fold(self, accumulators: pl.DataFrame, groups: Groups, by: Sequence[str]) -> pl.DataFrame:
        """One accumulator a group, in the order of the groups; ``by`` columns are those of its first row."""
        heads = take(accumulators[list(by)], groups.first()) if by else None
        columns = heads.get_columns() if heads is not None else []
        for name, aggregate in self.incremental.items():
            names = self.fields(name)
            folded = aggregate.fold([accumulators[column] for column in names], groups)
            columns += [column.alias(label) for column, label in zip(folded, names, strict=True)]
        return pl.DataFrame(columns)

    def fold_by(self, accumulators: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
        """One accumulator for each value of the ``by`` columns, by first appearance."""
        groups = Groups.by([accumulators[name] for name in by], accumulators.height)
        return self.fold(accumulators, groups, by)

    def extend(
        self, carried: pl.DataFrame | None, inputs: pl.DataFrame, window: Sequence[pl.Series], by: Sequence[str]
    ) -> pl.DataFrame:
        """Carried accumulators, one for each value of ``by``, with new rows folded onto them; new groups follow."""
        fresh = pl.DataFrame([*window, *(inputs[key] for key in self.keys)])
        heads, codes = _grouped(carried[fresh.columns] if carried is not None else None, fresh, by)
        columns = heads.get_columns()
        shared: Shared = {}
        for name, aggregate in self.incremental.items():
            names = self.fields(name)
            before = [carried[column] for column in names] if carried is not None else []
            column = self.plain.get(name, f":{name}")
            folded = aggregate.extend(before, inputs[column], codes, heads.height, shared)
            columns += [column.alias(label) for column, label in zip(folded, names, strict=True)]
        return pl.DataFrame(columns)

    def final(self, accumulators: pl.DataFrame) -> list[pl.Series]:
        """The incremental aggregates' results."""
        return [
            aggregate.final([accumulators[column] for column in self.fields(name)]).alias(name)
            for name, aggregate in self.incremental.items()
        ]

    def close(self, raw: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
        """The closing expressions over the rows of finished windows, a row for each value of ``by``.

        One group more is put in behind them and taken out: a single group or row would be computed otherwise
        than several (:func:`evenflow.operators.kernel.at_least_two`).
        """
        keyed = raw.with_columns(self._key(raw[name]) for name in self.keys)
        padded = pl.concat([keyed, keyed.head(1)]).with_columns(pl.Series(PAD, [False] * raw.height + [True]))
        expressions = [expression.alias(f":{name}") for name, expression in self.closing.items()]
        closed = without_flags(padded).group_by([PAD, *by], maintain_order=True).agg(expressions)
        return closed.head(closed.height - 1).drop(PAD)

    def ordered(self, columns: Sequence[pl.Series]) -> list[pl.Series]:
        """The results in the order in which the user named them."""
        by_name = {column.name: column for column in columns}
        return [by_name[name] for name in self.names]
