"""What corrections changed: tentative rows beside the stable rows that took their place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from evenflow.engine.linear import Stable, Tentative
from evenflow.operators.items import HEADER, RecDone, Undo


@dataclass(frozen=True, slots=True, eq=False)
class Correction:
    """From an ``Undo`` to its ``RecDone``: what was taken back, and what is stable instead."""

    time_us: int
    before: pl.DataFrame
    after: pl.DataFrame

    def compared(self, keys: Sequence[str]) -> pl.DataFrame:
        """Rows of both sides by key: every column as it was (``_before``) and as it is now, and ``change``.

        ``change`` is same, changed, added or removed.
        """
        before, after = (rows.drop(HEADER) for rows in (self.before, self.after))
        values = [name for name in after.columns if name not in keys]
        renamed = before.rename({name: f"{name}_before" for name in values}).with_columns(_had=True)
        both = renamed.join(after.with_columns(_has=True), on=list(keys), how="full", coalesce=True)
        same = pl.all_horizontal(pl.col(name).eq_missing(pl.col(f"{name}_before")) for name in values)
        change = (
            pl.when(pl.col("_had").is_null())
            .then(pl.lit("added"))
            .when(pl.col("_has").is_null())
            .then(pl.lit("removed"))
            .when(same)
            .then(pl.lit("same"))
            .otherwise(pl.lit("changed"))
        )
        return both.with_columns(change=change).drop("_had", "_has").sort(keys)


def corrections(items: Sequence[tuple[int, Any]]) -> list[Correction]:
    """The corrections among what a client saw; ``before`` is what was tentative at the undo."""
    found: list[Correction] = []
    tentative: list[pl.DataFrame] = []
    stable: list[pl.DataFrame] | None = None
    for time_us, item in items:
        match item:
            case Tentative(rows):
                tentative.append(rows)
            case Undo():
                stable = []
            case Stable(rows) if stable is not None:
                stable.append(rows)
            case RecDone() if stable is not None:
                empty = (tentative or stable)[0].clear()
                found.append(Correction(time_us, pl.concat([empty, *tentative]), pl.concat([empty, *stable])))
                tentative, stable = [], None
            case _:
                pass
    return found
